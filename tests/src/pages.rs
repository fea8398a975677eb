//! The pages of `docs/` and the README: their examples compile and run as doctests of this package.

/// One item a page, so that an example that fails says whose it is.
macro_rules! pages {
    ($($name:ident = $path:literal,)*) => {$(
        #[doc = include_str!(concat!("../../", $path))]
        struct $name;
    )*};
}

pages! {
    Readme = "README.md",
    Map = "docs/README.md",
    Benchmarks = "docs/benchmarks.md",
    BigKinds = "docs/big-kinds.md",
    Contract = "docs/contract.md",
    FromGo = "docs/from-go.md",
    FromKube = "docs/from-kube.md",
    LeaderElection = "docs/leader-election.md",
    OneSecret = "docs/one-secret.md",
    OwnWrites = "docs/own-writes.md",
    StartTogether = "docs/start-together.md",
    Testing = "docs/testing.md",
    WatchAndIndex = "docs/watch-and-index.md",
}
