//! The admission order of option refusals (wire 5.8), and values in canonical and text form.

use iggy_protocol::option_catalog::{check_create, check_update};
use iggy_protocol::{Durability, ErrorCode, Name, Options, Scope, TopicSettings, TypedValue};

fn text(value: &str) -> TypedValue {
    TypedValue::string(value).unwrap()
}

fn options<const N: usize>(entries: [(&str, TypedValue); N]) -> Options {
    entries
        .into_iter()
        .map(|(key, value)| (Name::new(key).unwrap(), value))
        .collect()
}

fn names<const N: usize>(keys: [&str; N]) -> Vec<Name> {
    keys.into_iter().map(|key| Name::new(key).unwrap()).collect()
}

fn create_code(scope: Scope, options: &Options) -> Option<ErrorCode> {
    check_create(scope, options).err().map(|error| error.code())
}

fn update_code(set: &Options, reset: &[Name]) -> Option<ErrorCode> {
    check_update(Scope::Topic, set, reset).err().map(|error| error.code())
}

#[test]
fn given_several_faults_when_updating_should_name_the_first_in_admission_order() {
    let none = Options::new();
    assert_eq!(
        update_code(&none, &[]),
        Some(ErrorCode::InvalidCommand),
        "nothing to do"
    );
    assert_eq!(
        update_code(&none, &names(["nonsense", "nonsense"])),
        Some(ErrorCode::InvalidCommand),
        "reset twice"
    );
    let both = options([("nonsense", text("1"))]);
    assert_eq!(
        update_code(&both, &names(["nonsense"])),
        Some(ErrorCode::InvalidCommand),
        "set and reset"
    );
    let unknown = options([("nonsense", text("1")), ("critical_keys", text("a"))]);
    assert_eq!(
        update_code(&unknown, &[]),
        Some(ErrorCode::UnsupportedOptionKey),
        "unknown before internal"
    );
    let internal = options([("critical_keys", text("a")), ("durability", text("persisted"))]);
    assert_eq!(
        update_code(&internal, &[]),
        Some(ErrorCode::ReadOnlyOption),
        "internal before create-only"
    );
    let create_only = options([("durability", text("persisted"))]);
    assert_eq!(
        update_code(&create_only, &names(["name"])),
        Some(ErrorCode::OptionNotUpdatable),
        "create-only before reset"
    );
    let value = options([("message_expiry", text("soon"))]);
    assert_eq!(
        update_code(&value, &names(["name"])),
        Some(ErrorCode::OptionNotResettable),
        "reset before value"
    );
    assert_eq!(update_code(&value, &[]), Some(ErrorCode::InvalidOptionValue));
    assert_eq!(
        update_code(&options([("name", text("new"))]), &names(["message_expiry"])),
        None
    );
}

#[test]
fn given_a_create_when_checked_should_refuse_columns_and_wrong_scopes() {
    let column = options([("name", text("a"))]);
    assert_eq!(create_code(Scope::Topic, &column), Some(ErrorCode::InvalidOptionValue));
    let wrong_scope = options([("segment_size", text("1 MiB"))]);
    assert_eq!(
        create_code(Scope::Stream, &wrong_scope),
        Some(ErrorCode::UnsupportedOptionKey)
    );
    let key = options([("encryption_key", TypedValue::raw(&[7; 31]).unwrap())]);
    assert_eq!(create_code(Scope::Stream, &key), Some(ErrorCode::InvalidEncryptionKey));
    let factor = options([("replication_factor", TypedValue::uint32(33))]);
    assert_eq!(
        create_code(Scope::Topic, &factor),
        Some(ErrorCode::InvalidReplicationFactor)
    );
}

#[test]
fn given_text_values_when_checked_should_become_canonical() {
    let given = options([
        ("message_expiry", text("7 days")),
        ("max_topic_size", text("server_default")),
        ("segment_size", text("128 MiB")),
        ("durability", text("persisted")),
        ("compression_algorithm", TypedValue::uint8(2)),
        ("preallocate_segments", text("true")),
        ("messages_required_to_save", text("1")),
    ]);
    let canonical = check_create(Scope::Topic, &given).unwrap();
    let expected = options([
        ("message_expiry", TypedValue::uint64(604_800_000_000)),
        ("segment_size", TypedValue::uint64(128 << 20)),
        ("durability", text("persisted")),
        ("compression_algorithm", text("gzip")),
        ("preallocate_segments", TypedValue::bool(true)),
        ("messages_required_to_save", TypedValue::uint32(1)),
    ]);
    assert_eq!(canonical, expected);
    let settings = TopicSettings::from_options(&canonical);
    assert_eq!(
        (settings.durability, settings.consumer_offset_durability),
        (Durability::Persisted, Durability::Replicated)
    );
    assert!(settings.validate(512).is_ok(), "64 GiB may be reserved");
    assert_eq!(
        settings.validate(513).unwrap_err().code(),
        ErrorCode::InvalidOptionValue
    );
}

#[test]
fn given_an_encryption_key_as_base64_when_checked_should_become_its_bytes() {
    let given = options([("encryption_key", text("CQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQk="))]);
    let canonical = check_create(Scope::Stream, &given).unwrap();
    assert_eq!(canonical.get("encryption_key").unwrap().as_raw().unwrap(), [9; 32]);
    for wrong in ["CQkJ", "CQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQl=", "not base64"] {
        assert_eq!(
            create_code(Scope::Stream, &options([("encryption_key", text(wrong))])),
            Some(ErrorCode::InvalidEncryptionKey)
        );
    }
}

#[test]
fn given_a_finite_topic_size_when_below_a_segment_should_be_refused() {
    let canonical = check_create(
        Scope::Topic,
        &options([("max_topic_size", TypedValue::uint64(1 << 20))]),
    )
    .unwrap();
    assert_eq!(
        TopicSettings::from_options(&canonical).validate(1).unwrap_err().key,
        "max_topic_size"
    );
}
