// toml++ as this project reads it. Its version 3.3 relies on a condition before it checks it: a text such as
// "[)" breaks the condition. With NDEBUG the parser relies on it silently; without NDEBUG it asserts it. So
// NDEBUG is undefined here, and the assertion is replaced by nothing: the parser then goes on to its own
// check.
#pragma once
#undef NDEBUG
#define TOML_ASSERT(expr) static_assert(true)
#include <toml++/toml.h>
