// toml++ as this project reads it, on one condition: 3.3 assumes what a text such as "[)" does not keep,
// lines before it checks it. Without NDEBUG it asserts that instead; and an assertion can be taken away.
#pragma once
#undef NDEBUG
#define TOML_ASSERT(expr) static_assert(true)
#include <toml++/toml.h>
