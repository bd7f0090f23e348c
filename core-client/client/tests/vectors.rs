//! Holds encryption and poll options against the golden vectors.

use std::path::PathBuf;

use iggy::prelude::*;
use serde_json::Value;

fn rows(file: &str) -> Vec<Value> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../bdd/vectors")
        .join(file);
    let rows: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(!rows.is_empty());
    rows
}

fn unhex(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap();
    (0..text.len() / 2)
        .map(|at| u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).unwrap())
        .collect()
}

#[test]
fn given_encrypted_vectors_when_decrypted_should_give_their_texts_and_notice_any_change() {
    for row in rows("encryption.json") {
        let (key, sealed) = (unhex(&row["value"]["key_hex"]), unhex(&row["hex"]));
        let encryptor: Box<dyn Encryptor> = if row["name"].as_str().unwrap().starts_with("aes256gcmsiv") {
            Box::new(Aes256GcmSivEncryptor::new(&key).unwrap())
        } else {
            Box::new(Aes256GcmEncryptor::new(&key).unwrap())
        };
        let plain = unhex(&row["value"]["plaintext_hex"]);
        assert_eq!(encryptor.decrypt(&sealed).unwrap(), plain, "{}", row["name"]);
        for at in [0, sealed.len() / 2, sealed.len() - 1] {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(
                encryptor.decrypt(&changed).unwrap_err().code(),
                ErrorCode::CannotDecryptData
            );
        }
        assert_eq!(
            encryptor.decrypt(&sealed[..27]).unwrap_err().code(),
            ErrorCode::CannotDecryptData
        );
        let again = encryptor.encrypt(&plain).unwrap();
        assert_eq!(again.len(), plain.len() + 28);
        assert_ne!(again, encryptor.encrypt(&plain).unwrap(), "each nonce is drawn anew");
        assert_eq!(encryptor.decrypt(&again).unwrap(), plain);
    }
    assert_eq!(
        Aes256GcmEncryptor::new(&[9; 31]).unwrap_err().code(),
        ErrorCode::InvalidEncryptionKey
    );
    Aes256GcmEncryptor::from_base64_key("CQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQk=").unwrap();
}

#[test]
fn given_poll_options_when_validated_should_agree_with_the_vectors() {
    for row in rows("poll_options.json") {
        let value = &row["value"];
        let number = |key: &str| value[key].as_u64().unwrap();
        assert_eq!(value["commit"], "manual", "only manual commits are recorded");
        let options = PollOptions {
            count: number("count") as u32,
            max_wait: IggyDuration::from_micros(number("max_wait_us")),
            min_count: number("min_count") as u32,
            max_bytes: number("max_bytes") as u32,
            commit: CommitPolicy::Manual,
        };
        assert_eq!(
            options.request_timeout().as_micros(),
            number("request_timeout_us"),
            "{}",
            row["name"]
        );
        let expected = value["error"].get("code").and_then(Value::as_u64);
        let code = options.validate().err().map(|error| u64::from(error.code().code()));
        assert_eq!(code, expected, "{}", row["name"]);
    }
    let never = CommitPolicy::Auto(AutoCommit {
        interval: IggyDuration::ZERO,
        every: None,
        after: CommitAfter::Marked,
    });
    let error = PollOptions {
        commit: never,
        ..PollOptions::default()
    }
    .validate()
    .unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidConfiguration);
}
