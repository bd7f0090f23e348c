//! Declares a struct once and derives its wire form: the fields, in order, each in the encoding of its type.
//!
//! Most bodies of the protocol are such sequences. A field whose encoding differs from that of its type names one of the
//! modules in [`field`], as in `partition: Option<u32> = optional_partition`.

use bytes::{BufMut, BytesMut};

use crate::codec::{Decode, DecodeError, Encode, Reader, WriteWire};
use crate::consumer::Consumer;
use crate::context::PartitionContext;
use crate::identifier::Identifier;
use crate::name::Name;
use crate::options::Options;
use crate::permissions::Permissions;
use crate::polling_strategy::PollingStrategy;

/// A value with one encoding wherever it stands as a field.
pub trait Field: Sized {
    /// Appends the value.
    fn write(&self, out: &mut BytesMut);
    /// Reads the value; `field` names it in errors.
    fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError>;
}

macro_rules! integer_fields {
    ($($type:ident $put:ident)*) => {
        $(impl Field for $type {
            fn write(&self, out: &mut BytesMut) {
                out.$put(*self);
            }

            fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
                reader.$type(field)
            }
        })*
    };
}

integer_fields! { u8 put_u8 u16 put_u16_le u32 put_u32_le u64 put_u64_le u128 put_u128_le f32 put_f32_le }

macro_rules! composite_fields {
    ($($type:ty)*) => {
        $(impl $crate::wire_struct::Field for $type {
            fn write(&self, out: &mut bytes::BytesMut) {
                $crate::codec::Encode::encode(self, out);
            }

            fn read(reader: &mut $crate::codec::Reader<'_>, _: &'static str) -> Result<Self, $crate::codec::DecodeError> {
                <$type as $crate::codec::Decode>::decode(reader)
            }
        })*
    };
}

composite_fields! { Identifier Consumer PollingStrategy PartitionContext Permissions }
pub(crate) use composite_fields;

impl Field for bool {
    fn write(&self, out: &mut BytesMut) {
        out.put_flag(*self);
    }

    fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
        Ok(reader.u8(field)? != 0)
    }
}

impl Field for Name {
    fn write(&self, out: &mut BytesMut) {
        out.put_name(self);
    }

    fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
        reader.name(field)
    }
}

/// Text after a four-byte length.
impl Field for String {
    fn write(&self, out: &mut BytesMut) {
        out.put_str32(self);
    }

    fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
        reader.str32(field).map(str::to_owned)
    }
}

impl<const N: usize> Field for [u8; N] {
    fn write(&self, out: &mut BytesMut) {
        out.put_slice(self);
    }

    fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
        reader.array(field).copied()
    }
}

/// An options block after its four-byte length.
impl Field for Options {
    fn write(&self, out: &mut BytesMut) {
        out.put_block32(self);
    }

    fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
        let length = reader.u32(field)? as usize;
        Self::from_bytes(reader.bytes(field, length)?)
    }
}

/// A presence byte, then the value if there is one.
impl<T: Field> Field for Option<T> {
    fn write(&self, out: &mut BytesMut) {
        out.put_flag(self.is_some());
        if let Some(value) = self {
            value.write(out);
        }
    }

    fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, DecodeError> {
        reader.presence(field)?.then(|| T::read(reader, field)).transpose()
    }
}

/// Encodings that differ from that of their type.
#[allow(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "one calling convention for every field of a struct"
)]
pub(crate) mod field {
    use super::{BufMut, BytesMut, Decode, DecodeError, Encode, Field, Options, Permissions, Reader};
    use crate::secret::Secret;

    /// A flag byte and four bytes, always (wire 5.3).
    pub(crate) mod optional_partition {
        use super::{BytesMut, DecodeError, Reader};
        use crate::consumer::{decode_optional_partition, encode_optional_partition};

        pub(crate) fn write(partition: &Option<u32>, out: &mut BytesMut) {
            encode_optional_partition(*partition, out);
        }

        pub(crate) fn read(reader: &mut Reader<'_>, _: &'static str) -> Result<Option<u32>, DecodeError> {
            decode_optional_partition(reader)
        }
    }

    /// An options block that runs to the end of the body.
    pub(crate) mod options_to_end {
        use super::{BytesMut, Decode, DecodeError, Encode, Options, Reader};

        pub(crate) fn write(options: &Options, out: &mut BytesMut) {
            options.encode(out);
        }

        pub(crate) fn read(reader: &mut Reader<'_>, _: &'static str) -> Result<Options, DecodeError> {
            Options::from_bytes(reader.rest())
        }
    }

    /// A secret after a one-byte length; zero bytes are allowed.
    pub(crate) mod short_secret {
        use super::{BufMut, BytesMut, DecodeError, Reader, Secret};

        pub(crate) fn write(secret: &Secret, out: &mut BytesMut) {
            debug_assert!(secret.expose().len() <= 255, "checked before it is encoded");
            out.put_u8(secret.expose().len() as u8);
            out.put_slice(secret.expose().as_bytes());
        }

        pub(crate) fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Secret, DecodeError> {
            let length = reader.u8(field)?;
            Ok(Secret::new(reader.text(field, usize::from(length))?))
        }
    }

    /// One byte of presence, then length and permissions; absent means one zero byte (wire 10, requests).
    pub(crate) mod optional_permissions {
        use super::{BufMut, BytesMut, Decode, DecodeError, Permissions, Reader};
        use crate::codec::WriteWire;

        pub(crate) fn write(permissions: &Option<Permissions>, out: &mut BytesMut) {
            out.put_u8(u8::from(permissions.is_some()));
            if let Some(permissions) = permissions {
                out.put_block32(permissions);
            }
        }

        pub(crate) fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Option<Permissions>, DecodeError> {
            if !reader.presence(field)? {
                return Ok(None);
            }
            let length = reader.u32(field)? as usize;
            Permissions::from_bytes(reader.bytes(field, length)?).map(Some)
        }
    }

    /// The permissions part of user replies: four zero bytes, or presence, length and permissions (wire 10).
    pub(crate) mod permissions_part {
        use super::{BufMut, BytesMut, DecodeError, Permissions, Reader, optional_permissions};

        pub(crate) fn write(permissions: &Option<Permissions>, out: &mut BytesMut) {
            match permissions {
                None => out.put_u32_le(0),
                present => optional_permissions::write(present, out),
            }
        }

        pub(crate) fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Option<Permissions>, DecodeError> {
            let permissions = optional_permissions::read(reader, field)?;
            if permissions.is_none() && *reader.array::<3>(field)? != [0; 3] {
                return Err(DecodeError::rule(field, "absent permissions are four zero bytes"));
            }
            Ok(permissions)
        }
    }

    /// A four-byte count, then that many values.
    pub(crate) mod counted {
        use super::{BufMut, BytesMut, DecodeError, Field, Reader};

        pub(crate) fn write<T: Field>(items: &[T], out: &mut BytesMut) {
            out.put_u32_le(items.len() as u32);
            for item in items {
                item.write(out);
            }
        }

        pub(crate) fn read<T: Field>(reader: &mut Reader<'_>, field: &'static str) -> Result<Vec<T>, DecodeError> {
            // A value takes at least one byte, so the count is bounded by what is left; memory grows as values are read.
            let count = reader.count(field, 1)?;
            let mut items = Vec::new();
            for _ in 0..count {
                items.push(T::read(reader, field)?);
            }
            Ok(items)
        }
    }

    /// Values up to the end of the body.
    pub(crate) mod to_end {
        use super::{BytesMut, DecodeError, Field, Reader};

        pub(crate) fn write<T: Field>(items: &[T], out: &mut BytesMut) {
            for item in items {
                item.write(out);
            }
        }

        pub(crate) fn read<T: Field>(reader: &mut Reader<'_>, field: &'static str) -> Result<Vec<T>, DecodeError> {
            let mut items = Vec::new();
            while !reader.is_empty() {
                items.push(T::read(reader, field)?);
            }
            Ok(items)
        }
    }

    /// A one-byte count, then that many values.
    pub(crate) mod short_counted {
        use super::{BufMut, BytesMut, DecodeError, Field, Reader};

        pub(crate) fn write<T: Field>(items: &[T], out: &mut BytesMut) {
            debug_assert!(items.len() <= 255, "checked before it is encoded");
            out.put_u8(items.len() as u8);
            for item in items {
                item.write(out);
            }
        }

        pub(crate) fn read<T: Field>(reader: &mut Reader<'_>, field: &'static str) -> Result<Vec<T>, DecodeError> {
            let count = reader.u8(field)?;
            (0..count).map(|_| T::read(reader, field)).collect()
        }
    }
}

macro_rules! wire_struct {
    ($($(#[$doc:meta])* pub struct $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty $(= $codec:ident)?,)* })*) => {
        $($(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }

        impl $crate::codec::Encode for $name {
            fn encode(&self, out: &mut bytes::BytesMut) {
                $($crate::wire_struct::wire_struct!(@write self.$field, out, $($codec)?);)*
                let _ = out;
            }
        }

        impl<'a> $crate::codec::Decode<'a> for $name {
            fn decode(reader: &mut $crate::codec::Reader<'a>) -> Result<Self, $crate::codec::DecodeError> {
                let _ = &reader;
                Ok(Self { $($field: $crate::wire_struct::wire_struct!(@read reader, $field, $($codec)?),)* })
            }
        }

        impl $crate::wire_struct::Field for $name {
            fn write(&self, out: &mut bytes::BytesMut) {
                $crate::codec::Encode::encode(self, out);
            }

            fn read(
                reader: &mut $crate::codec::Reader<'_>,
                _: &'static str,
            ) -> Result<Self, $crate::codec::DecodeError> {
                <Self as $crate::codec::Decode>::decode(reader)
            }
        })*
    };
    (@write $value:expr, $out:ident, ) => { $crate::wire_struct::Field::write(&$value, $out) };
    (@write $value:expr, $out:ident, $codec:ident) => { $crate::wire_struct::field::$codec::write(&$value, $out) };
    (@read $reader:ident, $field:ident, ) => { $crate::wire_struct::Field::read($reader, stringify!($field))? };
    (@read $reader:ident, $field:ident, $codec:ident) => {
        $crate::wire_struct::field::$codec::read($reader, stringify!($field))?
    };
}

pub(crate) use wire_struct;
