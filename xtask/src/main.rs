//! Build logic of the workspace.
fn main() {}
