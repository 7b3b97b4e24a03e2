// Tells the bytes of a sample from those that replaced them.
#pragma once
#include "leat/base/hash.h"
#include "leat/dataset/catalogue.h"

namespace leat {

/// Another value once an object of the sample was replaced: a hash of the ETags
/// and sizes of the objects that hold its fields. Without ETags, of the sizes
/// alone. The digest of a catalogue leaves ETags out.
/// REQUIRES: sample < catalogue.samples().
Hash128 sample_version(const Catalogue& catalogue, SampleId sample);

}  // namespace leat
