#include "leat/bucket/random_id.h"

#include <openssl/rand.h>

#include <array>

#include "leat/base/check.h"
#include "leat/bucket/request_body.h"

namespace leat {

std::string random_id() {
  std::array<char, kIdDigits / 2> bytes;
  LEAT_CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()),
                        int(bytes.size())) == 1);
  return to_hex({bytes.data(), bytes.size()});
}

}  // namespace leat
