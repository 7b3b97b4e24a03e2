// The facts about credentials that `leat doctor` tells.
#pragma once
#include <stop_token>
#include <string>
#include <string_view>

#include "leat/base/clock.h"
#include "leat/store/cloud/provider.h"
#include "leat/store/diagnosis.h"

namespace leat {

/// "good for another 0h59m59s, then renewed".
std::string remaining_life(Nanoseconds left);

/// That requests go as nobody's; `why` says whose wish that is.
Diagnosis no_credentials(std::string_view why);

/// Credentials that are known without asking anybody.
Diagnosis known_credentials(std::string who);

/// Asks the place, and tells how long what it gives is good, or why it gives
/// nothing. Blocks, as CredentialProvider::fetch(). `guide` is a page about
/// places.
Diagnosis diagnose_place(CredentialProvider& place, const Clock& clock,
                         std::string_view guide, const std::stop_token& stop);

}  // namespace leat
