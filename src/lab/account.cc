#include "lab/account.h"

namespace weft::lab {

Result<Computed> account_quantity(const std::string& name) {
  return fail("there is no quantity '" + name + "': this program computes none");
}

}  // namespace weft::lab
