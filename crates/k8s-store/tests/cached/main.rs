//! Tests of the cached store, on paused time with a scripted fetch.
