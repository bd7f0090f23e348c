// What the server answers. Times are microseconds since the Unix epoch, sizes bytes.

export interface Stream {
  id: number;
  name: string;
  createdAt: bigint;
  sizeBytes: bigint;
  messagesCount: bigint;
  topicsCount: number;
  options: Record<string, string>;
  derivedOptions: Record<string, string>;
}
export interface Topic {
  id: number;
  name: string;
  createdAt: bigint;
  sizeBytes: bigint;
  messagesCount: bigint;
  partitionsCount: number;
  options: Record<string, string>;
  derivedOptions: Record<string, string>;
}
export interface StreamDetails extends Stream {
  topics: Topic[];
}
export interface Partition {
  id: number;
  createdAt: bigint;
  segmentsCount: number;
  currentOffset: bigint;
  sizeBytes: bigint;
  messagesCount: bigint;
  incarnation: bigint;
  members: number[];
  inSync: number[];
}
export interface TopicDetails extends Topic {
  partitions: Partition[];
}
export interface ConsumerGroup {
  id: number;
  name: string;
  partitionsCount: number;
  membersCount: number;
}
export interface ConsumerGroupDetails extends ConsumerGroup {
  members: { id: number; partitions: number[] }[];
}
export interface Assignment {
  generation: bigint;
  partitions: number[];
}
export interface ConsumerOffset {
  partitionId: number;
  currentOffset: bigint;
  storedOffset: bigint;
}
export type GlobalPermission =
  | 'manage_servers' | 'read_servers' | 'manage_users' | 'read_users' | 'manage_streams' | 'read_streams'
  | 'manage_topics' | 'read_topics' | 'poll_messages' | 'send_messages';
export type StreamPermission =
  | 'manage_stream' | 'read_stream' | 'manage_topics' | 'read_topics' | 'poll_messages' | 'send_messages';
export type TopicPermission = 'manage_topic' | 'read_topic' | 'poll_messages' | 'send_messages';
/** What a user may do everywhere, with streams by their number, and with their topics by theirs. */
export interface Permissions {
  global?: GlobalPermission[];
  streams?: Record<number, { granted?: StreamPermission[]; topics?: Record<number, TopicPermission[]> }>;
}
export type UserStatus = 'active' | 'inactive';
export interface User {
  id: number;
  username: string;
  status: UserStatus;
  createdAt: bigint;
}
export interface UserDetails extends User {
  permissions: Permissions | null;
}
/** A token, without its text. */
export interface PersonalAccessToken {
  name: string;
  expiryAt: bigint | null;
}
export interface Identity {
  userId: number;
  session: bigint;
}
export interface ConnectedClient {
  clientId: number;
  /** `null` before it signed in. */
  userId: number | null;
  transport: string;
  address: string;
  consumerGroupsCount: number;
}
export interface ConnectedClientDetails extends ConnectedClient {
  consumerGroups: { streamId: number; topicId: number; groupId: number }[];
}
export interface Node {
  replicaId: number;
  name: string;
  address: string;
  /** Ports; `null` where it does not serve that transport. */
  tcp: number | null;
  quic: number | null;
  http: number | null;
  websocket: number | null;
  role: string;
  status: string;
}
export interface OptionDescription {
  key: string;
  kind: string | null;
  default: string | null;
  updatable: boolean;
  resettable: boolean;
  secret: boolean;
  readOnly: boolean;
  critical: boolean;
  description: string;
}
/** What a node counts about itself. Times are microseconds, processor use is percent of one core. */
export interface Stats {
  processId: number;
  cpuUsage: number;
  totalCpuUsage: number;
  memoryUsage: bigint;
  totalMemory: bigint;
  availableMemory: bigint;
  runTime: bigint;
  startTime: bigint;
  readBytes: bigint;
  writtenBytes: bigint;
  messagesSizeBytes: bigint;
  streamsCount: number;
  topicsCount: number;
  partitionsCount: number;
  segmentsCount: number;
  messagesCount: bigint;
  clientsCount: number;
  consumerGroupsCount: number;
  hostname: string;
  osName: string;
  osVersion: string;
  kernelVersion: string;
  iggyServerVersion: string;
  threadsCount: number;
  freeDiskSpace: bigint;
  totalDiskSpace: bigint;
  openFilesCount: number;
  openFilesLimit: number;
  cache: { streamId: number; topicId: number; partitionId: number; hits: bigint; misses: bigint; hitRatio: number }[];
}
/** A page of metadata changes. */
export interface MetadataChanges {
  /** Where the next page starts. */
  next: string | null;
  hasMore: boolean;
  /** Continues a scan of what exists now. */
  token: string | null;
  records: Record<string, any>[];
  items: Record<string, any>[];
  [member: string]: any;
}
