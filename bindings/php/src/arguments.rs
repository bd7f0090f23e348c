//! The arguments of operations, from what PHP passed.

use ext_php_rs::prelude::*;
use ext_php_rs::types::{ZendHashTable, Zval};
use serde_json::{Value, json};

use crate::options::consumer_json;
use crate::value::{settings as settings_of, to_json, with};

/// What names a stream.
pub fn of_stream(stream: &Zval) -> PhpResult<Value> {
    Ok(json!({ "stream": to_json("stream", stream)? }))
}

/// What names a topic.
pub fn of_topic(stream: &Zval, topic: &Zval) -> PhpResult<Value> {
    Ok(with(of_stream(stream)?, "topic", to_json("topic", topic)?))
}

/// What names a consumer group.
pub fn of_group(stream: &Zval, topic: &Zval, group: &Zval) -> PhpResult<Value> {
    Ok(with(of_topic(stream, topic)?, "group", to_json("group", group)?))
}

/// What names a user.
pub fn of_user(user: &Zval) -> PhpResult<Value> {
    Ok(json!({ "user": to_json("user", user)? }))
}

/// What names a stored offset.
pub fn of_offset(given: &Zval, stream: &Zval, topic: &Zval, partition_id: i64) -> PhpResult<Value> {
    let place = with(of_topic(stream, topic)?, "partition_id", partition_id);
    Ok(with(place, "consumer", consumer_json(given)?))
}

/// What changes of a resource.
pub fn change(place: Value, options: Option<&ZendHashTable>, reset: Option<&ZendHashTable>) -> PhpResult<Value> {
    let mut names = Vec::new();
    for each in reset.into_iter().flat_map(ZendHashTable::values) {
        names.push(to_json("reset", each)?);
    }
    let options = settings_of("options", options)?;
    Ok(with(with(place, "options", options), "reset", names))
}

/// Options of something new.
pub fn new_resource(place: Value, options: Option<&ZendHashTable>) -> PhpResult<Value> {
    Ok(with(place, "options", settings_of("options", options)?))
}

/// What a user may do.
pub fn permissions_of(given: Option<&ZendHashTable>) -> PhpResult<Option<Value>> {
    given.map(|given| settings_of("permissions", Some(given))).transpose()
}

/// From the earliest change on, unless it is said.
pub fn with_start(options: Value) -> Value {
    if options.get("start").is_some() {
        options
    } else {
        with(options, "start", "earliest")
    }
}

/// Adds what was given, and leaves out what was not.
pub fn with_given(arguments: Value, name: &str, given: Option<impl Into<Value>>) -> Value {
    match given {
        Some(value) => with(arguments, name, value),
        None => arguments,
    }
}

/// Settings of a client, and what makes it.
pub fn client_settings(connection_string: Option<String>, options: Option<&ZendHashTable>) -> PhpResult<Value> {
    let options = settings_of("options of a client", options)?;
    Ok(with_given(options, "connection_string", connection_string))
}
