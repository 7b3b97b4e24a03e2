// Providers' prices, from leat/engine/prices.toml or the user's own table.
#pragma once
#include <string>
#include <string_view>

#include "leat/base/result.h"
#include "leat/engine/toml_reader.h"
#include "leat/plan/price.h"

namespace leat {

/// The shipped prices of a provider: "s3" or "gcs".
///
/// Errors:
///   kInvalidArgument  no provider of this name
Result<Prices> prices_of(std::string_view provider);

/// The same for a user's prices, in the format of prices.toml; their source may
/// be missing. `name` names the text in messages.
///
/// Errors:
///   kInvalidArgument  it is not such a text; else as above
Result<Prices> prices_of(std::string_view provider, std::string_view text,
                         const std::string& name);

struct PricesAndBilling {
  Prices prices;
  Billing billing;
};

/// A [billing] table: docs/reference/plan.md. `where` is its name in errors.
///
/// Errors:
///   kInvalidArgument  a key that is unknown or out of range
Result<PricesAndBilling> read_billing(const toml::table& table,
                                      const std::string& where);

}  // namespace leat
