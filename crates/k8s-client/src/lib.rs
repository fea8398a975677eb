//! A thin Kubernetes client for informers: kubeconfig or in-cluster, namespace discovery, reads by resource.
#![forbid(unsafe_code)]
