Feature: Offsets and positions
  A consumer stores how far it came, by an offset or by the checkpoint of what it read, and goes on from there.

  Background:
    Given a signed-in client
    And the stream "orders" with the topic "created" of 2 partitions
    And 10 messages in partition 0

  Scenario: Nothing is stored until somebody stores it
    Then the consumer "audit" has no stored offset in partition 0
    When partition 0 is polled by "audit" from the next message with a count of 3
    Then the consumer "audit" has no stored offset in partition 0

  Scenario: The next message follows the stored offset
    When the consumer "audit" stores the offset 4 in partition 0
    Then the stored offset of "audit" in partition 0 is 4
    When partition 0 is polled by "audit" from the next message with a count of 3
    Then the poll returns the messages 5 to 7

  Scenario: Consumers and partitions have offsets of their own
    When the consumer "audit" stores the offset 4 in partition 0
    Then the consumer "search" has no stored offset in partition 0
    And the consumer "audit" has no stored offset in partition 1

  Scenario: A deleted offset is forgotten
    Given the consumer "audit" stored the offset 4 in partition 0
    When the offset of "audit" in partition 0 is deleted
    Then the consumer "audit" has no stored offset in partition 0

  Scenario: Deleting an offset that is not there says so
    When the offset of "audit" in partition 0 is deleted
    Then the request fails with "consumer_offset_not_found"

  Scenario: A checkpoint stores the position of the last message read
    When partition 0 is polled by "audit" from the first message with a count of 6
    And the checkpoint of the poll is stored for "audit"
    Then the stored offset of "audit" in partition 0 is 5

  Scenario: A checkpoint of an earlier message stores that position
    When partition 0 is polled by "audit" from the first message with a count of 6
    And the checkpoint of message 2 of the poll is stored for "audit"
    Then the stored offset of "audit" in partition 0 is 2

  Scenario: An offset beyond the end is refused
    When the consumer "audit" stores the offset 99 in partition 0
    Then the request fails with "invalid_offset"

  Scenario: A position of a topic that was deleted and created again is refused
    Given partition 0 was polled by "audit" from the first message with a count of 6
    When the topic "created" is deleted and created again with 2 partitions
    And the checkpoint of the poll is stored for "audit"
    Then the request fails with "history_unavailable"
    When the same partition is polled from its continuation with a count of 4
    Then the request fails with "history_unavailable"
    And the consumer "audit" has no stored offset in partition 0
