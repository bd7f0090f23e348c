/// @file
/// The whole client for C++20.
///
/// Everything here is inline code over the functions of `iggy/iggy.h`: no type of the standard library crosses into the
/// library, so that any compiler and any standard library may use it.
#pragma once

#include <iggy/client.hpp>
#include <iggy/task.hpp>
