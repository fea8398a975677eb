//! What must hold for any kubeconfig and any body of a refusal. Run by the fuzz targets, and by the tests here over
//! their seeds and what chance makes of them.

#[cfg(test)]
mod tests;

pub use crate::config::check_kubeconfig;
pub use crate::status::check_answer;
