//! How the last request ended.

use cucumber::then;

use crate::world::BddWorld;

#[then("the request succeeds")]
fn succeeds(world: &mut BddWorld) {
    world.expect_no_error();
}

#[then(regex = r#"^the request fails with "(\w+)"$"#)]
fn fails(world: &mut BddWorld, code: String) {
    let error = world.take_error().expect("an error");
    assert_eq!(error.code().name(), code, "{error}");
}
