//! Permissions as text: `poll_messages,send_messages`, `0:r_str,p_msg#1:s_msg,m_top#2`.

use std::str::FromStr;

use iggy_protocol::{GlobalPermissions, StreamFlags, StreamPermissions, TopicPermissions};

/// What one `--stream-permissions` value says about one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamGrant {
    /// Id of the stream.
    pub stream: u32,
    /// What is granted on it and on its topics.
    pub permissions: StreamPermissions,
}

type Flag<T> = (&'static str, &'static str, fn(&mut T) -> &mut bool);

const GLOBAL: [Flag<GlobalPermissions>; 10] = [
    ("manage_servers", "m_srv", |flags| &mut flags.manage_servers),
    ("read_servers", "r_srv", |flags| &mut flags.read_servers),
    ("manage_users", "m_usr", |flags| &mut flags.manage_users),
    ("read_users", "r_usr", |flags| &mut flags.read_users),
    ("manage_streams", "m_str", |flags| &mut flags.manage_streams),
    ("read_streams", "r_str", |flags| &mut flags.read_streams),
    ("manage_topics", "m_top", |flags| &mut flags.manage_topics),
    ("read_topics", "r_top", |flags| &mut flags.read_topics),
    ("poll_messages", "p_msg", |flags| &mut flags.poll_messages),
    ("send_messages", "s_msg", |flags| &mut flags.send_messages),
];

const STREAM: [Flag<StreamFlags>; 6] = [
    ("manage_stream", "m_str", |flags| &mut flags.manage_stream),
    ("read_stream", "r_str", |flags| &mut flags.read_stream),
    ("manage_topics", "m_top", |flags| &mut flags.manage_topics),
    ("read_topics", "r_top", |flags| &mut flags.read_topics),
    ("poll_messages", "p_msg", |flags| &mut flags.poll_messages),
    ("send_messages", "s_msg", |flags| &mut flags.send_messages),
];

const TOPIC: [Flag<TopicPermissions>; 4] = [
    ("manage_topic", "m_top", |flags| &mut flags.manage_topic),
    ("read_topic", "r_top", |flags| &mut flags.read_topic),
    ("poll_messages", "p_msg", |flags| &mut flags.poll_messages),
    ("send_messages", "s_msg", |flags| &mut flags.send_messages),
];

/// Reads global permissions separated by commas.
///
/// # Errors
/// A word that is no permission; says what is allowed.
pub fn parse_global_permissions(text: &str) -> Result<GlobalPermissions, String> {
    parse_flags(text, &GLOBAL)
}

impl FromStr for StreamGrant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split('#');
        let (stream, flags) = parse_grant(parts.next().unwrap_or_default(), "stream", &STREAM)?;
        let mut permissions = StreamPermissions {
            flags,
            ..StreamPermissions::default()
        };
        for part in parts {
            let (topic, flags) = parse_grant(part, "topic", &TOPIC)?;
            if permissions.topics.insert(topic, flags).is_some() {
                return Err(format!("the topic {topic} stands there twice"));
            }
        }
        Ok(Self { stream, permissions })
    }
}

/// Reads `ID` or `ID:flag,flag`.
fn parse_grant<T: Default>(text: &str, what: &str, known: &[Flag<T>]) -> Result<(u32, T), String> {
    let (id, flags) = match text.split_once(':') {
        Some((id, flags)) => (id, parse_flags(flags, known)?),
        None => (text, T::default()),
    };
    let id = id
        .parse()
        .map_err(|_| format!("`{id}` is no {what} id; allowed: its number"))?;
    Ok((id, flags))
}

fn parse_flags<T: Default>(text: &str, known: &[Flag<T>]) -> Result<T, String> {
    parse_words(text.split(',').map(str::trim), known)
}

fn parse_words<'a, T: Default>(words: impl Iterator<Item = &'a str>, known: &[Flag<T>]) -> Result<T, String> {
    let mut flags = T::default();
    for word in words {
        let Some((_, _, flag)) = known.iter().find(|(long, short, _)| *long == word || *short == word) else {
            let allowed: Vec<_> = known
                .iter()
                .map(|(long, short, _)| format!("{long} ({short})"))
                .collect();
            return Err(format!(
                "`{word}` is no permission here; allowed: {}",
                allowed.join(", ")
            ));
        };
        *flag(&mut flags) = true;
    }
    Ok(flags)
}

/// Global permissions by their names.
///
/// # Errors
/// A name that is none; says what is allowed.
pub fn parse_global(names: &[String]) -> Result<GlobalPermissions, String> {
    parse_words(names.iter().map(String::as_str), &GLOBAL)
}

/// As [`parse_global`], of a stream.
///
/// # Errors
/// As [`parse_global`].
pub fn parse_stream(names: &[String]) -> Result<StreamFlags, String> {
    parse_words(names.iter().map(String::as_str), &STREAM)
}

/// As [`parse_global`], of a topic.
///
/// # Errors
/// As [`parse_global`].
pub fn parse_topic(names: &[String]) -> Result<TopicPermissions, String> {
    parse_words(names.iter().map(String::as_str), &TOPIC)
}

/// The long names of what is granted, for showing.
pub fn global_names(mut flags: GlobalPermissions) -> Vec<&'static str> {
    names(&mut flags, &GLOBAL)
}

/// As [`global_names`], of a stream.
pub fn stream_names(mut flags: StreamFlags) -> Vec<&'static str> {
    names(&mut flags, &STREAM)
}

/// As [`global_names`], of a topic.
pub fn topic_names(mut flags: TopicPermissions) -> Vec<&'static str> {
    names(&mut flags, &TOPIC)
}

fn names<T>(flags: &mut T, known: &[Flag<T>]) -> Vec<&'static str> {
    known
        .iter()
        .filter_map(|(long, _, flag)| (*flag(flags)).then_some(*long))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_long_and_short_names_should_set_the_same_flags() {
        let long = parse_global_permissions("poll_messages,send_messages").unwrap();
        let short = parse_global_permissions("p_msg, s_msg").unwrap();
        assert_eq!(long, short);
        assert_eq!(global_names(long), ["poll_messages", "send_messages"]);
        assert!(
            parse_global_permissions("manage_stream")
                .unwrap_err()
                .contains("manage_streams (m_str)")
        );
        assert!(parse_global_permissions("").is_err());
    }

    #[test]
    fn given_a_grant_should_read_the_stream_and_each_topic() {
        let grant: StreamGrant = "0:r_str,p_msg#1:s_msg,m_top#2".parse().unwrap();
        assert_eq!(grant.stream, 0);
        assert_eq!(stream_names(grant.permissions.flags), ["read_stream", "poll_messages"]);
        assert_eq!(
            topic_names(grant.permissions.topics[&1]),
            ["manage_topic", "send_messages"]
        );
        assert_eq!(grant.permissions.topics[&2], TopicPermissions::default());
        assert_eq!(
            "7".parse::<StreamGrant>().unwrap().permissions.flags,
            StreamFlags::default()
        );
    }

    #[test]
    fn given_grants_that_cannot_be_should_say_what_is_allowed() {
        for (text, part) in [
            ("orders:r_str", "allowed: its number"),
            ("0:r_srv", "read_stream (r_str)"),
            ("0#x", "no topic id"),
            ("0#1#1", "twice"),
            ("", "no stream id"),
        ] {
            let error = text.parse::<StreamGrant>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
