Feature: Consumer groups
  The members of a group share the partitions of a topic: each partition has one owner at a time, whoever comes and goes.

  Background:
    Given a signed-in client
    And the stream "orders" with the topic "created" of 6 partitions

  Scenario: A group from its creation to its deletion
    When the consumer group "billing" is created
    Then the consumer group "billing" exists with 0 members
    When the consumer group "billing" is deleted
    Then the consumer group "billing" does not exist

  Scenario: A single member reads every partition
    Given 2 messages in each partition
    And the member "a" of the group "billing"
    When "a" receives 12 messages
    Then every partition was read in order and nothing twice

  Scenario: Two members share the partitions evenly
    Given the member "a" of the group "billing"
    And the member "b" of the group "billing"
    When the members have settled
    Then "a" and "b" own 3 partitions each
    And no partition has two owners
    When 4 messages are sent to each partition
    Then "a" and "b" together receive 24 messages and none twice

  Scenario: What a member leaves behind goes to the others
    Given the member "a" of the group "billing"
    And the member "b" of the group "billing"
    And the members have settled
    When "b" leaves
    And the members have settled
    Then "a" owns 6 partitions
    When 2 messages are sent to each partition
    And "a" receives 12 messages
    Then every partition was read in order and nothing twice

  Scenario: A new member goes on where the old one committed
    Given 2 messages in each partition
    And the member "a" of the group "billing"
    And "a" received 12 messages and committed them
    And "a" left
    And 1 messages in each partition
    And the member "b" of the group "billing"
    When "b" receives 6 messages
    Then "b" received message 2 of every partition

  Scenario: A member that lost its partition cannot commit it
    Given the member "a" of the group "billing"
    And 1 messages in each partition
    And "a" received 6 messages
    And the member "b" of the group "billing"
    And the members have settled
    When "a" commits a message of a partition that "b" owns
    Then the request fails with "consumer_group_partition_not_owned"

  Scenario: A member whose client signs out is gone
    Given the member "a" of the group "billing"
    And the member "b" of the group "billing"
    And the members have settled
    When the client of "b" signs out
    And the members have settled
    Then "a" owns 6 partitions

  # Its session lives on for 36 s, in case it only lost its connection.
  @slow
  Scenario: What a member leaves behind whose process is killed goes to the others
    Given a process that is a member of the group "billing" of the topic "created" in the stream "orders"
    And the member "a" of the group "billing"
    Then the consumer group "billing" exists with 2 members
    When that process is killed
    And the members have settled
    Then the consumer group "billing" exists with 1 members
    And "a" owns 6 partitions
    When 2 messages are sent to each partition
    And "a" receives 12 messages
    Then every partition was read in order and nothing twice

  Scenario: A group is created by its first member only if that is wanted
    When a member of the group "billing" joins without creating it
    Then the request fails with "consumer_group_name_not_found"
