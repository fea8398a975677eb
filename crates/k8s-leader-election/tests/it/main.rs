//! Integration tests.
fn main(){}
