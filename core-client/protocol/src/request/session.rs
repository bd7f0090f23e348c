//! Login, bind and the version every one of them starts with (wire 4).

use bytes::{BufMut, Bytes, BytesMut};

use crate::codec::{Decode, DecodeError, Encode, Reader};
use crate::limits::{MAX_PASSWORD_BYTES, MAX_USERNAME_BYTES, MIN_PASSWORD_BYTES, MIN_USERNAME_BYTES};
use crate::name::Name;
use crate::secret::Secret;
use crate::version::PackedVersion;
use crate::wire_struct::{Field, composite_fields, wire_struct};

wire_struct! {
    /// The version a client speaks and what it is called: the prefix of 40, 45 and 15 (wire 4.2). A server gates on it
    /// before it looks at the rest.
    pub struct ClientVersionInfo {
        /// Packed protocol version.
        protocol_version: u32,
        /// Name of the client library.
        sdk_name: Name,
        /// Version of the client library.
        sdk_version: Name,
    }

    /// Binds a connection to a session that exists (15, wire 4.5).
    pub struct BindSession {
        /// The version prefix.
        version: ClientVersionInfo,
        /// The client id of the session.
        client_id: u128,
        /// The session, or zero to resolve a registration whose reply was lost.
        session: u64,
        /// The metadata position an answering node must have applied.
        metadata_watermark: u64,
        /// Proves that the session is ours.
        bind_secret: BindSecret,
    }
}

impl ClientVersionInfo {
    /// The packed version.
    pub fn version(&self) -> PackedVersion {
        PackedVersion(self.protocol_version)
    }
}

/// 32 random bytes made once per session. Its `Debug` form shows nothing of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BindSecret(pub [u8; 32]);

impl std::fmt::Debug for BindSecret {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("BindSecret(..)")
    }
}

impl Encode for BindSecret {
    fn encode(&self, out: &mut BytesMut) {
        out.put_slice(&self.0);
    }
}

impl<'a> Decode<'a> for BindSecret {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.array("bind secret").map(|bytes| Self(*bytes))
    }
}

composite_fields! { BindSecret }

/// How a client proves who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials {
    /// By user name and password (command 40).
    Password {
        /// The user name.
        username: Name,
        /// The password, at most 255 bytes.
        password: Secret,
    },
    /// By personal access token of 1..=255 bytes (command 45).
    Token(Secret),
}

impl Credentials {
    /// Checks the lengths a client enforces before it sends: user name 3..=50, password 3..=100, token 1..=255 bytes.
    pub fn check(&self) -> Result<(), DecodeError> {
        let (field, length, allowed, within) = match self {
            Self::Password { username, password } => {
                let length = username.len();
                if !(MIN_USERNAME_BYTES..=MAX_USERNAME_BYTES).contains(&length) {
                    let error = DecodeError::length("username", length, "3..=50 bytes");
                    return Err(error.with_code(crate::ErrorCode::InvalidUsername));
                }
                let length = password.expose().len();
                (
                    "password",
                    length,
                    "3..=100 bytes",
                    (MIN_PASSWORD_BYTES..=MAX_PASSWORD_BYTES).contains(&length),
                )
            }
            Self::Token(token) => {
                let length = token.expose().len();
                ("token", length, "1..=255 bytes", (1..=255).contains(&length))
            }
        };
        if within {
            return Ok(());
        }
        let code = match self {
            Self::Password { .. } => crate::ErrorCode::InvalidPassword,
            Self::Token(_) => crate::ErrorCode::InvalidPersonalAccessToken,
        };
        Err(DecodeError::length(field, length, allowed).with_code(code))
    }
}

/// Registers a session: the body of 40 and 45, which share operation 1 (wire 4.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// The version prefix.
    pub version: ClientVersionInfo,
    /// Proves later that a bind is ours.
    pub bind_secret: BindSecret,
    /// Who signs in.
    pub credentials: Credentials,
    /// An opaque context; our client sends none.
    pub context: Option<Bytes>,
}

impl Eq for ClientVersionInfo {}

impl Encode for Login {
    fn encode(&self, out: &mut BytesMut) {
        self.version.encode(out);
        self.bind_secret.encode(out);
        match &self.credentials {
            Credentials::Password { username, password } => {
                username.write(out);
                put_short(password.expose(), out);
            }
            Credentials::Token(token) => put_short(token.expose(), out),
        }
        let context = self.context.as_deref().unwrap_or_default();
        out.put_u32_le(context.len() as u32);
        out.put_slice(context);
    }
}

fn put_short(text: &str, out: &mut BytesMut) {
    debug_assert!(text.len() <= 255, "checked before it is encoded");
    out.put_u8(text.len() as u8);
    out.put_slice(text.as_bytes());
}

fn read_context(reader: &mut Reader<'_>) -> Result<Option<Bytes>, DecodeError> {
    let length = reader.u32("login context length")? as usize;
    let context = reader.bytes("login context", length)?;
    reader.finish()?;
    Ok((length > 0).then(|| Bytes::copy_from_slice(context)))
}

fn read_password(mut reader: Reader<'_>) -> Result<(Credentials, Option<Bytes>), DecodeError> {
    let username = reader.name("username")?;
    let length = reader.u8("password length")?;
    let password = Secret::new(reader.text("password", usize::from(length))?);
    Ok((Credentials::Password { username, password }, read_context(&mut reader)?))
}

fn read_token(mut reader: Reader<'_>) -> Result<(Credentials, Option<Bytes>), DecodeError> {
    let token = Secret::new(reader.name_str("token")?);
    Ok((Credentials::Token(token), read_context(&mut reader)?))
}

impl<'a> Decode<'a> for Login {
    /// Reads to the end of the body: as 40 if that ends exactly there, else as 45. The error is that of reading it as 40.
    fn decode(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let version = ClientVersionInfo::decode(reader)?;
        let bind_secret = BindSecret::decode(reader)?;
        let rest = reader.clone();
        let (credentials, context) =
            read_password(rest.clone()).or_else(|error| read_token(rest).map_err(|_| error))?;
        reader.rest();
        Ok(Self {
            version,
            bind_secret,
            credentials,
            context,
        })
    }
}
