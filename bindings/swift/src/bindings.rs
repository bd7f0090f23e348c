//! Writes the Swift side of the library.

fn main() {
    uniffi::uniffi_bindgen_swift();
}
