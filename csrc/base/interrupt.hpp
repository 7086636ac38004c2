// A way out of long work that runs on the calling thread: Ctrl-C, as the program around this library sees it.
#pragma once

namespace fewfire {

// Thrown out of work that was asked to stop; what it worked on is as it was before.
struct Interrupted {};

// Who says whether work is to stop; the Python module does, where there is one.
void set_interruption(bool (*asked)());

// Throws `Interrupted` when work is to stop. Cheap enough for every step of a millisecond: asks ten times a second.
void interruption_point();

}  // namespace fewfire
