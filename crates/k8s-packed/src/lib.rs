//! Kubernetes objects as compact immutable bytes: decoded once from JSON, read without allocation, a serde citizen.
