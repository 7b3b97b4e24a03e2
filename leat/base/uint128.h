// Products of two 64-bit numbers.
#pragma once

namespace leat {

__extension__ using Uint128 = unsigned __int128;

}  // namespace leat
