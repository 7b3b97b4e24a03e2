// Catalogues made from catalogues: some of the samples of one, or several
// joined.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "leat/base/buffer.h"
#include "leat/base/result.h"
#include "leat/dataset/catalogue.h"

namespace leat {

/// A catalogue of these samples of `from`, in this order; a sample may come
/// twice. Objects that hold none of them are left out. Takes O(samples).
///
/// REQUIRES: each sample < from.samples().
Result<Buffer> select_samples(const Catalogue& from,
                              std::span<const SampleId> samples);

/// The same samples, with labels that count through `classes`: each keeps the
/// name of its class. Objects that hold no sample are left out. Takes
/// O(samples).
///
/// Errors:
///   kInvalidArgument  the class of a sample is not in `classes`, or has no
///   name
Result<Buffer> with_classes(const Catalogue& from,
                            const std::vector<std::string>& classes);

/// The CRC32C of a byte field's value; 0: none is kept.
using ChecksumOf = std::function<std::uint32_t(std::size_t, SampleId)>;

/// The same catalogue, with these checksums. Takes O(samples).
Result<Buffer> with_checksums(const Catalogue& from,
                              const ChecksumOf& checksum);

/// The prefix that a joined catalogue puts before the object keys of its part
/// `part`: "2/".
std::string joined_prefix(std::size_t part);

/// The samples of all parts, one part after the other. Object keys begin with
/// joined_prefix(); sample keys stay. Its layout is kShards if all parts have
/// that. Fields come in the order of the first part; classes are merged by name
/// and labels renumbered: see merge_classes().
///
/// It reads its parts, which it keeps alive: beside them it takes the keys of
/// their objects alone. Its digest is a function of theirs.
///
/// `places` says of how many places each part is joined itself, 0 for one that
/// is not: its keys begin with joined_prefix() then, and are counted on from
/// the places of the parts before it. Empty: none is.
///
/// A `part_field` becomes one more field: the number of a sample's part.
///
/// Errors:
///   kInvalidArgument  parts whose fields differ (names both), or which have a
///                     `part_field`; names of classes in some parts alone; a
///                     label of no class, where they are renumbered; 2^32
///                     objects or more
Result<Catalogue> join_catalogues(
    std::span<const std::shared_ptr<const Catalogue>> parts,
    std::span<const std::size_t> places = {}, std::string_view part_field = {});

/// The share of a whole that a sample belongs to: a function of `seed` and
/// `name` alone, so that samples added later move no other.
///
/// Uses the low half of XXH3-128 of the name, seeded, as a fraction of 2^64.
/// REQUIRES: `ends` rises and its last is 1: {0.9, 1} has shares 0 and 1.
std::size_t share_of(std::string_view name, std::uint64_t seed,
                     std::span<const double> ends);

}  // namespace leat
