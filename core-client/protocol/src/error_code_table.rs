//! Every error code of wire 13 in one table: number, name, text form, who raises it, and how a caller may retry it.
//! Numbers missing here are retired and never used again.

use crate::error_code::{RaisedBy, RetryClass};

macro_rules! error_codes {
    ($($code:literal $name:ident $text:literal $raised:ident $retry:ident;)*) => {
        /// An error code as it travels in a reply's status, a result section or a fetch section (wire 13).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u32)]
        pub enum ErrorCode {
            $(#[doc = concat!("`", $text, "` (", $code, ").")] $name = $code,)*
        }

        impl ErrorCode {
            /// Every code, ascending.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The code of this number, or `None` when this version does not define it.
            pub const fn known(code: u32) -> Option<Self> {
                match code {
                    $($code => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The text form used on HTTP and in messages to people: the name in `snake_case`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Who produces this code.
            pub const fn raised_by(self) -> RaisedBy {
                match self { $(Self::$name => RaisedBy::$raised,)* }
            }

            /// What a caller may do about this code.
            pub const fn retry_class(self) -> RetryClass {
                match self { $(Self::$name => RetryClass::$retry,)* }
            }
        }
    };
}

error_codes! {
    1 Error "error" Server Never;
    2 InvalidConfiguration "invalid_configuration" Server Never;
    3 InvalidCommand "invalid_command" Server Never;
    4 InvalidFormat "invalid_format" Server Never;
    5 FeatureUnavailable "feature_unavailable" Server Never;
    6 InvalidIdentifier "invalid_identifier" Server Never;
    7 InvalidVersion "invalid_version" Server Never;
    8 Disconnected "disconnected" Client AfterReconnect;
    9 CannotEstablishConnection "cannot_establish_connection" Client AfterReconnect;
    10 CannotCreateBaseDirectory "cannot_create_base_directory" Server Never;
    11 CannotCreateRuntimeDirectory "cannot_create_runtime_directory" Server Never;
    12 CannotRemoveRuntimeDirectory "cannot_remove_runtime_directory" Server Never;
    13 CannotCreateStateDirectory "cannot_create_state_directory" Server Never;
    14 StateFileNotFound "state_file_not_found" Server Never;
    15 StateFileCorrupted "state_file_corrupted" Server Never;
    16 InvalidStateEntryChecksum "invalid_state_entry_checksum" Server Never;
    19 CannotOpenDatabase "cannot_open_database" Server Never;
    20 ResourceNotFound "resource_not_found" Server Never;
    21 CannotCloseWebSocketConnection "cannot_close_web_socket_connection" Server Never;
    30 StaleClient "stale_client" Client AfterReconnect;
    31 TcpError "tcp_error" Client Never;
    32 QuicError "quic_error" Client Never;
    33 InvalidServerAddress "invalid_server_address" Client Never;
    34 InvalidClientAddress "invalid_client_address" Client Never;
    35 InvalidIpAddress "invalid_ip_address" Client Never;
    36 HttpError "http_error" Client Never;
    37 InvalidApiUrl "invalid_api_url" Client Never;
    40 Unauthenticated "unauthenticated" Server AfterRebind;
    41 Unauthorized "unauthorized" Server Never;
    42 InvalidCredentials "invalid_credentials" Server Never;
    43 InvalidUsername "invalid_username" Server Never;
    44 InvalidPassword "invalid_password" Server Never;
    45 InvalidUserStatus "invalid_user_status" Server Never;
    46 UserAlreadyExists "user_already_exists" Server Never;
    47 UserInactive "user_inactive" Server Never;
    48 CannotDeleteUser "cannot_delete_user" Server Never;
    49 CannotChangePermissions "cannot_change_permissions" Server Never;
    50 InvalidPersonalAccessTokenName "invalid_personal_access_token_name" Server Never;
    51 PersonalAccessTokenAlreadyExists "personal_access_token_already_exists" Server Never;
    52 PersonalAccessTokensLimitReached "personal_access_tokens_limit_reached" Server Never;
    53 InvalidPersonalAccessToken "invalid_personal_access_token" Server Never;
    54 PersonalAccessTokenExpired "personal_access_token_expired" Server Never;
    55 UsersLimitReached "users_limit_reached" Server Never;
    56 InvalidPersonalAccessTokenExpiry "invalid_personal_access_token_expiry" Server Never;
    57 TransientNotCommitted "transient_not_committed" Server SameFrame;
    58 TransientNotAccepted "transient_not_accepted" Server SameFrame;
    59 RequestAlreadyApplied "request_already_applied" Server Never;
    61 NotConnected "not_connected" Client AfterReconnect;
    63 ClientShutdown "client_shutdown" Client Never;
    64 InvalidTlsDomain "invalid_tls_domain" Client Never;
    65 InvalidTlsCertificatePath "invalid_tls_certificate_path" Client Never;
    66 InvalidTlsCertificate "invalid_tls_certificate" Client Never;
    67 FailedToAddCertificate "failed_to_add_certificate" Client Never;
    70 InvalidEncryptionKey "invalid_encryption_key" Server Never;
    71 CannotEncryptData "cannot_encrypt_data" Server Never;
    72 CannotDecryptData "cannot_decrypt_data" Server Never;
    73 InvalidJwtAlgorithm "invalid_jwt_algorithm" Server Never;
    74 InvalidJwtSecret "invalid_jwt_secret" Server Never;
    75 JwtMissing "jwt_missing" Server Never;
    76 CannotGenerateJwt "cannot_generate_jwt" Server Never;
    77 AccessTokenMissing "access_token_missing" Server Never;
    78 InvalidAccessToken "invalid_access_token" Server Never;
    79 CannotFetchJwks "cannot_fetch_jwks" Server Never;
    80 InvalidSizeBytes "invalid_size_bytes" Server Never;
    81 InvalidUtf8 "invalid_utf8" Server Never;
    82 InvalidNumberEncoding "invalid_number_encoding" Server Never;
    83 InvalidBooleanValue "invalid_boolean_value" Server Never;
    84 InvalidNumberValue "invalid_number_value" Server Never;
    85 RequestTooOld "request_too_old" Server Never;
    87 HistoryUnavailable "history_unavailable" Server Never;
    88 LifecycleBusy "lifecycle_busy" Server NewRequest;
    89 NotPrimary "not_primary" Server AfterReroute;
    90 DeferredPollCapacityExceeded "deferred_poll_capacity_exceeded" Server SameFrame;
    91 ProducerIdsExhausted "producer_ids_exhausted" Client Never;
    92 ProducerSequenceOutOfOrder "producer_sequence_out_of_order" Server Never;
    93 ProducerEpochFenced "producer_epoch_fenced" Server Never;
    94 ProducerUnknown "producer_unknown" Server Never;
    95 ProducerPartitionRequired "producer_partition_required" Server Never;
    100 ClientNotFound "client_not_found" Server Never;
    101 InvalidClientId "invalid_client_id" Server Never;
    206 ConnectionClosed "connection_closed" Client Never;
    209 CannotParseHeaderKind "cannot_parse_header_kind" Server Never;
    300 HttpResponseError "http_response_error" Client Never;
    301 InvalidHttpRequest "invalid_http_request" Client Never;
    302 InvalidJsonResponse "invalid_json_response" Client Never;
    303 InvalidBytesResponse "invalid_bytes_response" Client Never;
    304 EmptyResponse "empty_response" Client AfterReconnect;
    305 CannotCreateEndpoint "cannot_create_endpoint" Client Never;
    306 CannotParseUrl "cannot_parse_url" Client Never;
    400 WebSocketError "web_socket_error" Client Never;
    401 WebSocketConnectionError "web_socket_connection_error" Client Never;
    402 WebSocketCloseError "web_socket_close_error" Client Never;
    403 WebSocketReceiveError "web_socket_receive_error" Client Never;
    404 WebSocketSendError "web_socket_send_error" Client Never;
    1000 CannotCreateStreamsDirectory "cannot_create_streams_directory" Server Never;
    1001 CannotCreateStreamDirectory "cannot_create_stream_directory" Server Never;
    1002 CannotCreateStreamInfo "cannot_create_stream_info" Server Never;
    1003 CannotUpdateStreamInfo "cannot_update_stream_info" Server Never;
    1004 CannotOpenStreamInfo "cannot_open_stream_info" Server Never;
    1005 CannotReadStreamInfo "cannot_read_stream_info" Server Never;
    1006 CannotCreateStream "cannot_create_stream" Server Never;
    1007 CannotDeleteStream "cannot_delete_stream" Server Never;
    1008 CannotDeleteStreamDirectory "cannot_delete_stream_directory" Server Never;
    1009 StreamIdNotFound "stream_id_not_found" Server UnlessMetadataPrimary;
    1010 StreamNameNotFound "stream_name_not_found" Server UnlessMetadataPrimary;
    1011 StreamDirectoryNotFound "stream_directory_not_found" Server Never;
    1012 StreamNameAlreadyExists "stream_name_already_exists" Server Never;
    1013 InvalidStreamName "invalid_stream_name" Server Never;
    1014 InvalidStreamId "invalid_stream_id" Server Never;
    1015 CannotReadStreams "cannot_read_streams" Server Never;
    1019 InvalidTopicSize "invalid_topic_size" Server Never;
    1020 TooManyStreams "too_many_streams" Server Never;
    2000 CannotCreateTopicsDirectory "cannot_create_topics_directory" Server Never;
    2001 CannotCreateTopicDirectory "cannot_create_topic_directory" Server Never;
    2002 CannotCreateTopicInfo "cannot_create_topic_info" Server Never;
    2003 CannotUpdateTopicInfo "cannot_update_topic_info" Server Never;
    2004 CannotOpenTopicInfo "cannot_open_topic_info" Server Never;
    2005 CannotReadTopicInfo "cannot_read_topic_info" Server Never;
    2006 CannotCreateTopic "cannot_create_topic" Server Never;
    2007 CannotDeleteTopic "cannot_delete_topic" Server Never;
    2008 CannotDeleteTopicDirectory "cannot_delete_topic_directory" Server Never;
    2009 CannotPollTopic "cannot_poll_topic" Server Never;
    2010 TopicIdNotFound "topic_id_not_found" Server UnlessMetadataPrimary;
    2011 TopicNameNotFound "topic_name_not_found" Server UnlessMetadataPrimary;
    2013 TopicNameAlreadyExists "topic_name_already_exists" Server Never;
    2014 InvalidTopicName "invalid_topic_name" Server Never;
    2015 TooManyPartitions "too_many_partitions" Server Never;
    2016 InvalidTopicId "invalid_topic_id" Server Never;
    2017 CannotReadTopics "cannot_read_topics" Server Never;
    2018 InvalidReplicationFactor "invalid_replication_factor" Server Never;
    2019 InvalidPartitionsCount "invalid_partitions_count" Server Never;
    2020 TopicDirectoryNotFound "topic_directory_not_found" Server Never;
    2021 TooManyTopics "too_many_topics" Server Never;
    2022 PartitionsLimitReached "partitions_limit_reached" Server Never;
    2023 PartitionResizeDisabled "partition_resize_disabled" Server Never;
    3000 CannotCreatePartition "cannot_create_partition" Server Never;
    3001 CannotCreatePartitionsDirectory "cannot_create_partitions_directory" Server Never;
    3002 CannotCreatePartitionDirectory "cannot_create_partition_directory" Server Never;
    3003 CannotOpenPartitionLogFile "cannot_open_partition_log_file" Server Never;
    3004 CannotReadPartitions "cannot_read_partitions" Server Never;
    3005 CannotDeletePartition "cannot_delete_partition" Server Never;
    3006 CannotDeletePartitionDirectory "cannot_delete_partition_directory" Server Never;
    3007 PartitionNotFound "partition_not_found" Server UnlessMetadataPrimary;
    3008 NoPartitions "no_partitions" Server Never;
    3009 TopicFull "topic_full" Server Never;
    3010 CannotDeleteConsumerOffsetsDirectory "cannot_delete_consumer_offsets_directory" Server Never;
    3011 CannotDeleteConsumerOffsetFile "cannot_delete_consumer_offset_file" Server Never;
    3012 CannotCreateConsumerOffsetsDirectory "cannot_create_consumer_offsets_directory" Server Never;
    3013 PartitionIdSpaceExhausted "partition_id_space_exhausted" Server Never;
    3014 PartitionHistoryChanged "partition_history_changed" Server Never;
    3020 CannotReadConsumerOffsets "cannot_read_consumer_offsets" Server Never;
    3021 ConsumerOffsetNotFound "consumer_offset_not_found" Server Never;
    3022 NotResolvedConsumer "not_resolved_consumer" Server Never;
    3023 CannotOpenConsumerOffsetsFile "cannot_open_consumer_offsets_file" Server Never;
    3024 TooManyConsumerOffsets "too_many_consumer_offsets" Server Never;
    4000 SegmentNotFound "segment_not_found" Server Never;
    4001 SegmentClosed "segment_closed" Server Never;
    4002 InvalidSegmentSize "invalid_segment_size" Server Never;
    4003 CannotCreateSegmentLogFile "cannot_create_segment_log_file" Server Never;
    4004 CannotCreateSegmentIndexFile "cannot_create_segment_index_file" Server Never;
    4005 CannotCreateSegmentTimeIndexFile "cannot_create_segment_time_index_file" Server Never;
    4006 CannotSaveMessagesToSegment "cannot_save_messages_to_segment" Server Never;
    4007 CannotSaveIndexToSegment "cannot_save_index_to_segment" Server Never;
    4008 CannotSaveTimeIndexToSegment "cannot_save_time_index_to_segment" Server Never;
    4009 InvalidMessagesCount "invalid_messages_count" Server Never;
    4010 CannotAppendMessage "cannot_append_message" Server Never;
    4011 CannotReadMessage "cannot_read_message" Server Never;
    4012 CannotReadMessageId "cannot_read_message_id" Server Never;
    4013 CannotReadMessageState "cannot_read_message_state" Server Never;
    4014 CannotReadMessageTimestamp "cannot_read_message_timestamp" Server Never;
    4015 CannotReadHeadersLength "cannot_read_headers_length" Server Never;
    4016 CannotReadHeadersPayload "cannot_read_headers_payload" Server Never;
    4017 TooBigUserHeaders "too_big_user_headers" Server Never;
    4018 InvalidHeaderKey "invalid_header_key" Server Never;
    4019 InvalidHeaderValue "invalid_header_value" Server Never;
    4020 CannotReadMessageLength "cannot_read_message_length" Server Never;
    4021 CannotReadMessagePayload "cannot_read_message_payload" Server Never;
    4022 TooBigMessagePayload "too_big_message_payload" Server Never;
    4023 TooManyMessages "too_many_messages" Server Never;
    4024 EmptyMessagePayload "empty_message_payload" Server Never;
    4025 InvalidMessagePayloadLength "invalid_message_payload_length" Server Never;
    4026 CannotReadMessageChecksum "cannot_read_message_checksum" Server Never;
    4027 InvalidMessageChecksum "invalid_message_checksum" Server Never;
    4028 InvalidKeyValueLength "invalid_key_value_length" Server Never;
    4029 CommandLengthError "command_length_error" Server Never;
    4030 InvalidSegmentsCount "invalid_segments_count" Server Never;
    4031 NonZeroOffset "non_zero_offset" Server Never;
    4032 NonZeroTimestamp "non_zero_timestamp" Server Never;
    4033 MissingIndex "missing_index" Server Never;
    4034 InvalidIndexesByteSize "invalid_indexes_byte_size" Server Never;
    4035 InvalidIndexesCount "invalid_indexes_count" Server Never;
    4036 InvalidMessagesSize "invalid_messages_size" Server Never;
    4037 TooSmallMessage "too_small_message" Server Never;
    4038 InvalidMessageTimestampDelta "invalid_message_timestamp_delta" Server Never;
    4039 InvalidBatchChecksum "invalid_batch_checksum" Server Never;
    4040 InvalidHeaderKind "invalid_header_kind" Server Never;
    4041 UnsupportedOptionKey "unsupported_option_key" Server Never;
    4042 InvalidOptionValue "invalid_option_value" Server Never;
    4043 OptionsBlockTooLarge "options_block_too_large" Server Never;
    4050 CannotSendMessagesDueToClientDisconnection "cannot_send_messages_due_to_client_disconnection" Client Never;
    4051 BackgroundSendError "background_send_error" Client Never;
    4052 BackgroundSendTimeout "background_send_timeout" Client WhenDrained;
    4053 BackgroundSendBufferFull "background_send_buffer_full" Client WhenDrained;
    4054 BackgroundWorkerDisconnected "background_worker_disconnected" Client Never;
    4055 BackgroundSendBufferOverflow "background_send_buffer_overflow" Client WhenDrained;
    4056 ProducerSendFailed "producer_send_failed" Client Never;
    4057 ProducerClosed "producer_closed" Client Never;
    4100 InvalidOffset "invalid_offset" Server Never;
    4101 InvalidReservedField "invalid_reserved_field" Server Never;
    4102 SegmentSizeMismatchAtOpen "segment_size_mismatch_at_open" Server Never;
    4103 OptionNotUpdatable "option_not_updatable" Server Never;
    4104 OptionNotResettable "option_not_resettable" Server Never;
    4105 ReadOnlyOption "read_only_option" Server Never;
    4106 StreamEncryptionUnavailable "stream_encryption_unavailable" Server Never;
    4107 UnsupportedCriticalOption "unsupported_critical_option" Server Never;
    4108 CannotModifyRootUser "cannot_modify_root_user" Server Never;
    5000 ConsumerGroupIdNotFound "consumer_group_id_not_found" Server Never;
    5002 InvalidConsumerGroupId "invalid_consumer_group_id" Server Never;
    5003 ConsumerGroupNameNotFound "consumer_group_name_not_found" Server Never;
    5004 ConsumerGroupNameAlreadyExists "consumer_group_name_already_exists" Server Never;
    5005 InvalidConsumerGroupName "invalid_consumer_group_name" Server Never;
    5006 ConsumerGroupMemberNotFound "consumer_group_member_not_found" Server Never;
    5007 CannotCreateConsumerGroupInfo "cannot_create_consumer_group_info" Server Never;
    5008 CannotDeleteConsumerGroupInfo "cannot_delete_consumer_group_info" Server Never;
    5009 ConsumerGroupPartitionNotOwned "consumer_group_partition_not_owned" Server Never;
    5010 TooManyConsumerGroups "too_many_consumer_groups" Server Never;
    6000 MissingBaseOffsetRetainedMessageBatch "missing_base_offset_retained_message_batch" Server Never;
    6001 MissingLastOffsetDeltaRetainedMessageBatch "missing_last_offset_delta_retained_message_batch" Server Never;
    6002 MissingMaxTimestampRetainedMessageBatch "missing_max_timestamp_retained_message_batch" Server Never;
    6003 MissingLengthRetainedMessageBatch "missing_length_retained_message_batch" Server Never;
    6004 MissingPayloadRetainedMessageBatch "missing_payload_retained_message_batch" Server Never;
    7000 CannotReadBatchBaseOffset "cannot_read_batch_base_offset" Server Never;
    7001 CannotReadBatchLength "cannot_read_batch_length" Server Never;
    7002 CannotReadLastOffsetDelta "cannot_read_last_offset_delta" Server Never;
    7003 CannotReadMaxTimestamp "cannot_read_max_timestamp" Server Never;
    7004 CannotReadBatchPayload "cannot_read_batch_payload" Server Never;
    8000 InvalidConnectionString "invalid_connection_string" Client Never;
    9000 SnapshotFileCompletionFailed "snapshot_file_completion_failed" Server Never;
    10000 CannotSerializeResource "cannot_serialize_resource" Server Never;
    10001 CannotDeserializeResource "cannot_deserialize_resource" Server Never;
    10002 CannotReadFile "cannot_read_file" Server Never;
    10003 CannotReadFileMetadata "cannot_read_file_metadata" Server Never;
    10004 CannotSeekFile "cannot_seek_file" Server Never;
    10005 CannotAppendToFile "cannot_append_to_file" Server Never;
    10006 CannotWriteToFile "cannot_write_to_file" Server Never;
    10007 CannotOverwriteFile "cannot_overwrite_file" Server Never;
    10008 CannotDeleteFile "cannot_delete_file" Server Never;
    10009 CannotSyncFile "cannot_sync_file" Server Never;
    10010 CannotReadIndexOffset "cannot_read_index_offset" Server Never;
    10011 CannotReadIndexPosition "cannot_read_index_position" Server Never;
    10012 CannotReadIndexTimestamp "cannot_read_index_timestamp" Server Never;
    10013 TimestampOutOfRange "timestamp_out_of_range" Server Never;
    11000 ShardNotFound "shard_not_found" Server Never;
    11001 ShardCommunicationError "shard_communication_error" Server Never;
    12000 CannotBindToSocket "cannot_bind_to_socket" Server Never;
    12001 TaskTimeout "task_timeout" Server Never;
    13000 IoError "io_error" Server Never;
    14000 AlreadyAuthenticated "already_authenticated" Client Never;
    14001 InvalidSession "invalid_session" Client Never;
    14003 IncompatibleProtocolVersion "incompatible_protocol_version" Server Never;
    14004 SessionMismatch "session_mismatch" Client Never;
    14005 RequestIdExhausted "request_id_exhausted" Client Never;
    14006 OperationUncertain "operation_uncertain" Client Never;
    14007 LaneBlocked "lane_blocked" Client Never;
    14008 OperationNotRetained "operation_not_retained" Client Never;
    14009 PartitionLaneBlocked "partition_lane_blocked" Client Never;
    14010 FetchProgressUncertain "fetch_progress_uncertain" Client Never;
}
