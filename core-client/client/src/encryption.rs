//! End-to-end encryption of payloads and user headers, by the client alone.
//!
//! Each is encrypted by itself: 12 bytes of random nonce, the ciphertext, 16 bytes of tag. Tampering is noticed; the size
//! and the order of messages are not hidden.

use aes_gcm::aead::{Aead, KeyInit};
use bytes::Bytes;
use iggy_protocol::ErrorCode;
use rand::RngCore;

use crate::error::IggyError;
use crate::message::IggyMessage;

/// Bytes a value grows by.
pub const OVERHEAD: usize = NONCE + TAG;

const NONCE: usize = 12;
const TAG: usize = 16;

/// Encrypts and decrypts values.
pub trait Encryptor: Send + Sync + std::fmt::Debug {
    /// Encrypts a value.
    fn encrypt(&self, plain: &[u8]) -> Result<Vec<u8>, IggyError>;
    /// Decrypts a value, noticing any change to it.
    fn decrypt(&self, sealed: &[u8]) -> Result<Vec<u8>, IggyError>;
}

macro_rules! encryptor {
    ($(#[$doc:meta])* $name:ident $cipher:ty) => {
        $(#[$doc])*
        pub struct $name($cipher);

        impl $name {
            /// With a key of exactly 32 bytes.
            ///
            /// # Errors
            /// [`ErrorCode::InvalidEncryptionKey`] for a key of another length.
            pub fn new(key: &[u8]) -> Result<Self, IggyError> {
                <$cipher>::new_from_slice(key).map(Self).map_err(|_| {
                    let message = format!("an encryption key has 32 bytes, this one has {}", key.len());
                    IggyError::new(ErrorCode::InvalidEncryptionKey, message)
                })
            }

            /// With a key as standard base64 of 32 bytes.
            ///
            /// # Errors
            /// [`ErrorCode::InvalidEncryptionKey`] for anything else.
            pub fn from_base64_key(text: &str) -> Result<Self, IggyError> {
                use base64::Engine;
                let key = base64::engine::general_purpose::STANDARD.decode(text.trim()).map_err(|_| {
                    IggyError::new(ErrorCode::InvalidEncryptionKey, "an encryption key is standard base64 of 32 bytes")
                })?;
                Self::new(&key)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str(concat!(stringify!($name), "(..)"))
            }
        }

        impl Encryptor for $name {
            fn encrypt(&self, plain: &[u8]) -> Result<Vec<u8>, IggyError> {
                let mut nonce = [0; NONCE];
                rand::rng().fill_bytes(&mut nonce);
                let sealed = self.0.encrypt(&nonce.into(), plain);
                let sealed = sealed.map_err(|_| IggyError::new(ErrorCode::CannotEncryptData, "the value cannot be encrypted"))?;
                let mut out = Vec::with_capacity(NONCE + sealed.len());
                out.extend_from_slice(&nonce);
                out.extend_from_slice(&sealed);
                Ok(out)
            }

            fn decrypt(&self, sealed: &[u8]) -> Result<Vec<u8>, IggyError> {
                let wrong = |message| IggyError::new(ErrorCode::CannotDecryptData, message);
                let Some((nonce, rest)) = sealed.split_first_chunk::<NONCE>().filter(|(_, rest)| rest.len() >= TAG) else {
                    return Err(wrong("the value is shorter than nonce and tag"));
                };
                self.0.decrypt(&(*nonce).into(), rest).map_err(|_| wrong("the key is another one, or the value was changed"))
            }
        }
    };
}

encryptor! {
    /// AES-256-GCM.
    Aes256GcmEncryptor aes_gcm::Aes256Gcm
}

encryptor! {
    /// AES-256-GCM-SIV: a nonce drawn twice reveals only that two values are equal.
    Aes256GcmSivEncryptor aes_gcm_siv::Aes256GcmSiv
}

/// Encrypts payload and headers of a message.
pub fn seal(encryptor: &dyn Encryptor, message: &IggyMessage) -> Result<IggyMessage, IggyError> {
    change(message, |bytes| encryptor.encrypt(bytes))
}

/// Decrypts payload and headers of a message.
pub fn open(encryptor: &dyn Encryptor, message: &IggyMessage) -> Result<IggyMessage, IggyError> {
    change(message, |bytes| encryptor.decrypt(bytes))
}

fn change(message: &IggyMessage, each: impl Fn(&[u8]) -> Result<Vec<u8>, IggyError>) -> Result<IggyMessage, IggyError> {
    let payload = Bytes::from(each(&message.payload)?);
    let user_headers = message.user_headers.as_deref().map(each).transpose()?.map(Bytes::from);
    let mut header = message.header;
    header.payload_length = payload.len() as u32;
    header.user_headers_length = user_headers.as_ref().map_or(0, |headers| headers.len() as u32);
    Ok(IggyMessage {
        header,
        payload,
        user_headers,
    })
}
