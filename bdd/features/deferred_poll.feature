Feature: Polls that wait
  A poll may wait at the server until enough messages are there. A wait that ends without them is no error.

  Background:
    Given a signed-in client
    And the stream "orders" with the topic "created" of 2 partitions

  Scenario: What is there already is returned at once
    Given 3 messages in partition 0
    When partition 0 is polled from the first message with a wait of 30 s
    Then the poll returns the messages 0 to 2

  Scenario: What comes during the wait ends it
    Given a poll of partition 0 is waiting for up to 30 s
    When 2 messages are sent to partition 0 in one batch
    Then the waiting poll returns the messages 0 to 1

  Scenario: Other partitions do not end a wait
    Given a poll of partition 0 is waiting for up to 30 s
    When 2 messages are sent to partition 1 in one batch
    And 1 messages are sent to partition 0 in one batch
    Then the waiting poll returns the messages 0 to 0

  Scenario: A wait that ends without messages is no error
    When partition 0 is polled from the first message with a wait of 50 ms
    Then the poll returns no messages

  Scenario: What comes after a wait is there for the next one
    When partition 0 is polled from the first message with a wait of 50 ms
    Then the poll returns no messages
    When 2 messages are sent to partition 0 in one batch
    And partition 0 is polled from the first message with a wait of 30 s
    Then the poll returns the messages 0 to 1

  Scenario: A wait lasts until the smallest number of messages is there
    Given 2 messages in partition 0
    And a poll of partition 0 is waiting for up to 30 s for at least 5 messages
    When 2 messages are sent to partition 0 in one batch
    And 1 messages are sent to partition 0 in one batch
    Then the waiting poll returns the messages 0 to 4

  Scenario: A wait that ends before the smallest number returns what there is
    Given 2 messages in partition 0
    When partition 0 is polled from the first message for at least 5 messages with a wait of 50 ms
    Then the poll returns the messages 0 to 1

  Scenario: The size of a reply is bounded
    Given 10 messages of 1000 bytes in partition 0
    When partition 0 is polled from the first message with room for 4000 bytes
    Then the poll returns some of the messages from 0 on

  Scenario: A first message above the bound comes alone
    Given 2 messages of 5000 bytes in partition 0
    When partition 0 is polled from the first message with room for 1000 bytes
    Then the poll returns the messages 0 to 0

  Scenario: A poll that is given up stores nothing and the client goes on
    Given a poll of partition 0 by "audit" that stores what it reads is waiting for up to 30 s
    When the waiting poll is given up
    # What the same consumer asks next comes after all that the given-up poll left behind.
    And partition 0 is polled by "audit" from the next message with a count of 4 and a commit on read
    Then the poll returns no messages
    When 3 messages are sent to partition 0
    Then the consumer "audit" has no stored offset in partition 0
    When partition 0 is polled from the first message
    Then the poll returns the messages 0 to 2

  Scenario Outline: Limits that make no sense are refused before anything is asked
    When partition 0 is polled with <limits>
    Then the request fails with "<error>"

    Examples:
      | limits                                 | error                  |
      | a count of 0                           | invalid_messages_count |
      | at least 6 messages and a count of 5   | invalid_messages_count |
      | a wait of 601 s                        | invalid_command        |
      | room for 343 bytes                     | invalid_size_bytes     |
