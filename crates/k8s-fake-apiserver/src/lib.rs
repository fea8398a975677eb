//! An embedded Kubernetes API server for tests: real HTTP, list, watch, bookmarks, 410, patches, fault scripts, journal.
#![forbid(unsafe_code)]
