//! Tests of the cached store, on paused time with a scripted server.
mod cases;
mod fetches;
mod histories;
mod memory;
mod races;
mod reads;
mod world;
