Feature: Partitioning by key
  The same key always leads to the same partition, whichever language sends it.

  Background:
    Given a signed-in client

  Scenario Outline: A key has one partition
    Given the stream "orders" with the topic "created" of <partitions> partitions
    When 2 messages are sent with the key "<key>"
    Then partition <partition> holds 2 messages

    Examples:
      | key        | partitions | partition |
      | a          | 2          | 0         |
      | a          | 3          | 0         |
      | order-42   | 2          | 1         |
      | order-42   | 6          | 1         |
      | order-42   | 10         | 9         |
      | strumień-流-🚀 | 10         | 5         |

  Scenario: A numeric key is its eight bytes
    Given the stream "orders" with the topic "created" of 6 partitions
    When 2 messages are sent with the key number 1
    Then partition 3 holds 2 messages

  Scenario: A producer keeps to its key
    Given the stream "orders" with the topic "created" of 10 partitions
    And a producer with the key "order-42"
    When the producer sends 20 messages
    Then partition 9 holds 20 messages

  Scenario: A partitioner of the application decides
    Given the stream "orders" with the topic "created" of 4 partitions
    And a producer whose partitioner always says 3
    When the producer sends 5 messages
    Then partition 3 holds 5 messages
