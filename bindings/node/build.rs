//! Tells the linker what a native module of Node.js needs.

fn main() {
    napi_build::setup();
}
