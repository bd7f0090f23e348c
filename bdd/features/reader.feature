Feature: Partition reader
  A reader reads many partitions of a topic in batches, each from its own position, and lets no partition hold up another.

  Background:
    Given a signed-in client
    And the stream "orders" with the topic "created" of 4 partitions

  Scenario: Every partition is read in order
    Given 5 messages in each partition
    And a reader of the partitions 0 to 3
    When the reader has read 20 messages
    Then it read 5 messages of each partition in order

  Scenario: A reader waits for what comes
    Given a reader of the partitions 0 to 3
    When 3 messages are sent to partition 2 in one batch
    And the reader has read 3 messages
    Then it read 3 messages of partition 2

  Scenario: A busy partition does not starve a quiet one
    Given 2000 messages in partition 0
    And 10 messages in partition 3
    And a reader of the partitions 0 to 3 with a count of 50
    When the reader has read 500 messages
    Then it read 10 messages of partition 3

  Scenario: A commit stores how far a partition was read
    Given 6 messages in partition 1
    And a reader of the partitions 0 to 3 named "audit"
    When the reader has read 6 messages
    And the reader commits what it read
    Then the stored offset of "audit" in partition 1 is 5

  Scenario: A reader goes where it is told
    Given 10 messages in partition 2
    And a reader of the partitions 0 to 3
    And the reader has read 10 messages
    When the reader seeks partition 2 to offset 7
    And the reader has read 3 more messages
    Then the last 3 messages are 7 to 9 of partition 2

  Scenario: A partition that is missing does not fail the others
    Given 4 messages in partition 0
    And a reader of the partitions 0 and 9
    When the reader has read 4 messages
    Then it read 4 messages of partition 0
    And the reader reported "partition_not_found" for partition 9

  Scenario: A new history stops a partition until it is told where to go on
    Given 4 messages in partition 0
    And a reader of the partitions 0 to 3
    And the reader has read 4 messages
    When the topic "created" is deleted and created again with 4 partitions
    And 2 messages are sent to partition 0
    Then the reader stops partition 0 with "history_unavailable"
    When the reader seeks partition 0 to the first message
    And the reader has read 2 more messages
    Then the last 2 messages are 0 to 1 of partition 0

  Scenario: A reader that was closed is closed
    Given a reader of the partitions 0 to 3
    When the reader is closed
    Then reading fails with the class "closed"
