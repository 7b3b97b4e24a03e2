// The counters of a job, a row each. job_counters.cc lists them.
#pragma once
#include "leat/agent/wire/job_counter.h"

namespace leat::counters {

using enum JobCounter::Unit;
using enum JobCounter::Part;
using enum JobCounter::Unknown;

inline constexpr JobCounter kGets = {
    .name = "gets",
    .exposed_as = "leat_agent_reads_total",
    .help =
        "Requests for bytes that the job sent to its store, retries "
        "included."};
inline constexpr JobCounter kLists = {
    .name = "lists",
    .exposed_as = "leat_agent_lists_total",
    .help = "List requests that the job sent to its store."};
inline constexpr JobCounter kReadBytes = {
    .name = "read_bytes",
    .unit = kBytes,
    .shown_as = "bytes",
    .is_required = true,
    .exposed_as = "leat_agent_read_bytes_total",
    .help = "Bytes that the job received from its store."};
inline constexpr JobCounter kRequestDollars = {
    .name = "request_dollars",
    .unit = kDollars,
    .unknown = kUnlessTold,
    .exposed_as = "leat_agent_request_dollars_total",
    .help =
        "Price of the job's requests, for bytes and lists, where the "
        "provider is known: its store's, or its LEAT_PROVIDER."};
inline constexpr JobCounter kTransferDollars = {
    .name = "transfer_dollars",
    .unit = kDollars,
    .unknown = kUnlessTold,
    .exposed_as = "leat_agent_transfer_dollars_total",
    .help =
        "Price of those bytes through a NAT gateway, with its "
        "LEAT_NAT=1, where the provider is known."};
inline constexpr JobCounter kWaitSeconds = {
    .name = "wait_seconds",
    .unit = kSeconds,
    .shown_as = "stalled_accelerator_seconds",
    .is_required = true,
    .exposed_as = "leat_agent_stalled_seconds_total",
    .help =
        "Time that the job's accelerators, one a rank, stood still for "
        "data."};
inline constexpr JobCounter kStalledDollars = {
    .name = "stalled_dollars",
    .unit = kDollars,
    .unknown = kWhileZero,
    .is_required = true,
    .exposed_as = "leat_agent_stalled_dollars_total",
    .help =
        "Price of the time that the job waited for data, where its "
        "LEAT_NODE_PER_HOUR says what the node costs."};
inline constexpr JobCounter kRamHits = {
    .name = "ram_hits",
    .part = kCache,
    .is_required = true,
    .counted_by = Metric::kCacheRamHits,
    .exposed_as = "leat_agent_cache_hits_total",
    .tier = "ram",
    .help = "Reads that a tier of the cache answered."};
inline constexpr JobCounter kDiskHits = {
    .name = "disk_hits",
    .part = kCache,
    .is_required = true,
    .counted_by = Metric::kCacheDiskHits,
    .exposed_as = "leat_agent_cache_hits_total",
    .tier = "disk"};
inline constexpr JobCounter kPeerHits = {
    .name = "peer_hits",
    .part = kCache,
    .is_required = true,
    .counted_by = Metric::kCachePeerHits,
    .exposed_as = "leat_agent_cache_hits_total",
    .tier = "peer"};
inline constexpr JobCounter kCacheMisses = {
    .name = "cache_misses",
    .part = kCache,
    .shown_as = "misses",
    .is_required = true,
    .counted_by = Metric::kCacheMisses,
    .exposed_as = "leat_agent_cache_misses_total",
    .help = "Reads that no tier of the cache answered."};
inline constexpr JobCounter kRamBytes = {
    .name = "ram_bytes",
    .unit = kBytes,
    .part = kCache,
    .is_required = true,
    .counted_by = Metric::kCacheRamBytes,
    .exposed_as = "leat_agent_cache_bytes",
    .tier = "ram",
    .help = "Bytes of the job that the cache holds."};
inline constexpr JobCounter kDiskBytes = {
    .name = "disk_bytes",
    .unit = kBytes,
    .part = kCache,
    .is_required = true,
    .counted_by = Metric::kCacheDiskBytes,
    .exposed_as = "leat_agent_cache_bytes",
    .tier = "disk"};

}  // namespace leat::counters
