Feature: Commit policies
  An application chooses who stores positions: itself, the server as part of the read, or the client as it counts.

  Background:
    Given a signed-in client
    And the stream "orders" with the topic "created" of 1 partitions
    And 10 messages in partition 0

  Scenario: A poll that commits on read stores the offset of its last message
    When partition 0 is polled by "audit" from the next message with a count of 4 and a commit on read
    Then the stored offset of "audit" in partition 0 is 3
    When partition 0 is polled by "audit" from the next message with a count of 4 and a commit on read
    Then the poll returns the messages 4 to 7

  Scenario: A poll that commits on read and finds nothing stores nothing
    Given the consumer "audit" stored the offset 9 in partition 0
    When partition 0 is polled by "audit" from the next message with a count of 4 and a commit on read
    Then the poll returns no messages
    And the stored offset of "audit" in partition 0 is 9

  Scenario: A consumer with manual commits stores nothing by itself
    Given a consumer "audit" of partition 0 with manual commits
    When the consumer receives 6 messages
    And the consumer is closed
    Then the consumer "audit" has no stored offset in partition 0

  Scenario: A consumer stores what the application commits
    Given a consumer "audit" of partition 0 with manual commits
    When the consumer receives 6 messages
    And the consumer commits the last message it received
    Then the stored offset of "audit" in partition 0 is 5

  Scenario: A consumer that commits on read loses no message that it still held
    Given a consumer "audit" of partition 0 with commits on read
    When the consumer receives 4 messages
    And the consumer is closed
    Then the stored offset of "audit" in partition 0 is 3

  Scenario: A consumer with automatic commits stores what the application is done with
    Given a consumer "audit" of partition 0 with commits after every 4 messages
    When the consumer receives 5 messages
    Then the stored offset of "audit" in partition 0 comes to be 3

  Scenario: A consumer with automatic commits stores what is left when it is closed
    Given a consumer "audit" of partition 0 with commits after every 1000 messages
    When the consumer receives 5 messages
    And the consumer is closed
    Then the stored offset of "audit" in partition 0 is 3

  Scenario: A consumer goes on where the last one stopped
    Given a consumer "audit" of partition 0 with manual commits
    And the consumer received 6 messages and committed the last of them
    And the consumer was closed
    And a consumer "audit" of partition 0 with manual commits
    When the consumer receives 4 messages
    Then the consumer received the messages 6 to 9

  Scenario: A one-off poll cannot count
    When partition 0 is polled by "audit" with automatic commits
    Then the request fails with "invalid_configuration"
