Feature: Basic messaging
  A message that was sent is read back as it was, in the order of its partition, by whoever asks.

  Background:
    Given a signed-in client
    And the stream "orders" with the topic "created" of 3 partitions

  Scenario: What was sent is read back in order
    When 10 messages are sent to partition 1
    And partition 1 is polled from the first message
    Then the poll returns the messages 0 to 9
    And every message has the payload, the id and the headers it was sent with

  Scenario: A partition holds only what was sent to it
    When 5 messages are sent to partition 0
    And partition 2 is polled from the first message
    Then the poll returns no messages

  Scenario: A confirmation says where the messages are
    Given 7 messages in partition 2
    When 3 messages are sent to partition 2
    Then the confirmation names partition 2 and the base offset 7

  Scenario Outline: A poll starts where it is told and returns no more than its count
    Given 20 messages in partition 0
    When partition 0 is polled from <start> with a count of <count>
    Then the poll returns the messages <first> to <last>

    Examples:
      | start             | count | first | last |
      | the first message | 5     | 0     | 4    |
      | the last messages | 5     | 15    | 19   |
      | offset 7          | 3     | 7     | 9    |
      | offset 18         | 10    | 18    | 19   |
      | the next message  | 4     | 0     | 3    |

  Scenario: A poll starts at a point in time
    Given 4 messages in partition 0
    And the time is noted
    And 6 messages in partition 0
    When partition 0 is polled from the noted time with a count of 100
    Then the poll returns the messages 4 to 9

  Scenario: A continuation goes on where a poll ended
    Given 10 messages in partition 0
    When partition 0 is polled from the first message with a count of 4
    And the same partition is polled from its continuation with a count of 4
    Then the poll returns the messages 4 to 7

  Scenario: Balanced messages reach every partition
    When 30 messages are sent balanced, one at a time
    Then every partition holds 10 messages

  Scenario: Nothing is sent by a batch of no messages
    When 0 messages are sent to partition 0
    Then the request fails with "invalid_messages_count"

  Scenario: A message of the largest size is taken and a larger one is refused
    When a message of 1000000 bytes is sent to partition 0
    And partition 0 is polled from the first message with room for 2000000 bytes
    Then the poll returns the messages 0 to 0
    And every message has the payload, the id and the headers it was sent with
    When a message of 70000000 bytes is sent to partition 0
    Then the request fails with "too_big_message_payload"

  Scenario: A missing partition is named
    When 1 messages are sent to partition 9
    Then the request fails with "partition_not_found"
