//! `iggy-bdd-member CONNECTION_STRING STREAM TOPIC GROUP`: joins the group, says `joined`, and is a member until it is
//! killed. Scenarios take its life to see what becomes of its partitions.

use iggy::prelude::*;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [connection_string, stream, topic, group] = &arguments[..] else {
        return Err("iggy-bdd-member CONNECTION_STRING STREAM TOPIC GROUP".into());
    };
    let client = IggyClient::from_connection_string(connection_string)?;
    client.connect().await?;
    let mut member = client.consumer_group(group, stream, topic)?.build();
    member.init().await?;
    println!("joined");
    while let Some(message) = member.next().await {
        message?;
    }
    Ok(())
}
