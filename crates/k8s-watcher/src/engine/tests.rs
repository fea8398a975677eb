//! The engine against scripted servers on a virtual clock.
//!
//! [`Sim`] is a driver without I/O: it carries out actions, feeds answers and ticks in the order
//! of their time, and checks on the way what must hold always (one request at a time, one verdict
//! a page or event, a version that never goes back unless it is reported).

mod blind;
mod failing;
mod listing;
mod random;
mod sim;
mod watching;
