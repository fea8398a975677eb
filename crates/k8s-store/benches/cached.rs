//! The cached store beside the memory store and a plain moka cache.
fn main() {
    divan::main();
}
