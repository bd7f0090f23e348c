Feature: The node
  A client asks the node how it is, who is connected and what has changed.

  Background:
    Given a signed-in client

  Scenario: The node answers
    When the node is pinged
    Then the request succeeds

  Scenario: A client knows who it is
    Then the client finds itself among the clients, signed in as "iggy"

  Scenario: The statistics count what there is
    Given the stream "orders" with the topic "created" of 3 partitions
    And 5 messages in partition 0
    Then the statistics count 1 streams, 1 topics, 3 partitions and 5 messages

  Scenario: The roster of the cluster names this node
    Then the cluster has 1 nodes and its leader is the node the client talks to

  Scenario: Changes are listed in order
    Given the changes are noted
    And the stream "orders" with the topic "created" of 1 partitions
    Then the changes since then include the creation of a stream and of a topic, in that order

  Scenario: A snapshot holds files
    When a snapshot of the test entry is taken
    Then the snapshot is a zip archive

  Scenario: A raw request is answered like a typed one
    When the raw command 10 is sent
    Then the request succeeds
    When the raw command 38 is sent
    Then the request fails with "invalid_command"
