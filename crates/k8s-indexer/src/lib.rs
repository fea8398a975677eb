//! Index keys and field selectors for Kubernetes objects by JSONPath, in kubectl's dialect and RFC 9535.
#![forbid(unsafe_code)]
