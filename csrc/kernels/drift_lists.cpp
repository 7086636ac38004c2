#include "kernels/drift_lists.hpp"

#include "kernels/drift_refresh-inl.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

// Scores neurons neuron_of(0) … neuron_of(count − 1) on all anchors, four at a time; use(k, scores) gets each row.
template <class NeuronOf, class Use>
void for_scored(const DriftNet& net, DriftPiece& piece, std::size_t count, const NeuronOf& neuron_of, const Use& use) {
  for (std::size_t first = 0; first < count; first += block_rows) {
    const std::size_t rows = std::min(block_rows, count - first);
    const float* w[block_rows];
    for (std::size_t r = 0; r < block_rows; ++r)
      w[r] = net.weights.data() + neuron_of(first + std::min(r, rows - 1)) * net.stride;
    score_anchors(w, net.transposed.data(), net.inputs, net.columns, piece.scores.data());
    for (std::size_t r = 0; r < rows; ++r) use(first + r, piece.scores.data() + r * net.columns);
  }
  piece.counts.refreshed += count;
}

constexpr std::uint32_t soon = 16;  // passes; a skin that lasts less long is doubled

// Scores neurons anew that have moved beyond their skin.
void refresh(const DriftNet& net, DriftPiece& piece) {
  bool emptied = false;
  for_scored(
      net, piece, piece.stale.size(), [&](std::size_t k) { return piece.slots[piece.stale[k]].neuron; },
      [&](std::size_t k, const float* scores) {
        DriftSlot& slot = piece.slots[piece.stale[k]];
        if (piece.passes - slot.made < soon || !(slot.skin > 0.0f)) slot.skin = 2.0f * slot.skin + least;
        build_list(net, piece, piece.stale[k], scores);
        emptied |= slot.length == 0;
      });
  piece.stale.clear();
  if (emptied) drop_empty(net, piece);
  if (2 * piece.garbage > piece.ids.size()) compact(net, piece);
}

// Weights that no cache holds come from memory, and fetching them waits for room in the first cache's queue: the second
// one's is longer. At 2^19 neurons this takes 8% off a pass; a network that lies in the caches is better off with the first.
bool beyond_caches(const DriftNet& net) { return net.weights.size() * sizeof(float) > (std::size_t{1} << 23); }

[[gnu::always_inline]] inline void prefetch_bytes(const void* from, std::size_t bytes, bool beyond) {
  const char* line = static_cast<const char*>(from);
  if (beyond)
    for (std::size_t at = 0; at < bytes; at += 64) __builtin_prefetch(line + at, 0, 2);
  else
    for (std::size_t at = 0; at < bytes; at += 64) __builtin_prefetch(line + at);
}

// A pass goes through its slots in batches, each in steps over all of the batch: which entries to score, their scores,
// which entries fire, what they add. So nothing waits for the end of a score, and a wrong guess about the length of a
// list costs little.
constexpr std::size_t batch_size = 32;

struct Batch {
  std::size_t visits, blocks;
};

// The entries to score of the slots that come next, of `known` ones: fills `piece.visits` and, as long as there is room,
// `piece.picked`, in blocks of eight.
Batch pick_all(const DriftNet& net, DriftPiece& piece, std::size_t site, const std::uint32_t* slots, std::size_t known,
               bool firing) {
  constexpr std::size_t ahead = 8;
  const std::uint16_t* alarms = piece.alarms[site].pairs.data();
  const bool beyond = beyond_caches(net);
  std::size_t blocks = 0, at = 0;
  for (; at < std::min(known, batch_size); ++at) {
    const std::uint32_t slot = slots[at];
    const DriftSlot& own = piece.slots[slot];
    const std::size_t start = blocks * pairs;
    if (start + own.length + group > piece.alarmed.size()) break;
    if (at + ahead < known) {
      const DriftSlot& next = piece.slots[slots[at + ahead]];
      prefetch_bytes(alarms + next.first, std::min<std::size_t>(2 * next.length, 192), beyond);
      prefetch_bytes(piece.ids.low.data() + next.first, std::min<std::size_t>(2 * next.length, 192), beyond);
    }
    if (at + 2 * ahead < known) __builtin_prefetch(&piece.slots[slots[at + 2 * ahead]]);
    prefetch_bytes(net.weights.data() + own.neuron * net.stride, std::min<std::size_t>(4 * net.stride, 1024), beyond);
    const AlarmRule rule(net, own, net.start[site], piece.strains[slot]);
    const float reading = (net.reading[site] + piece.strains[slot]) * up;
    float others;
    const std::size_t found = pick(piece.ids, alarms, own.first, own.length, reading, firing,
                                   piece.picked.data() + start, piece.places.data() + start, others);
    piece.visits[at] = {slot,     own.neuron, own.first,  own.length,  static_cast<std::uint32_t>((found + pairs - 1) / pairs),
                        own.bias, own.output, rule.start, rule.margin, rule.inverse,
                        others};
    for (std::size_t left = found; left > 0; ++blocks) {
      const std::size_t here = std::min(left, pairs);
      piece.block_visits[blocks] = static_cast<std::uint32_t>(at);
      piece.block_masks[blocks] = (1u << here) - 1;
      left -= here;
    }
    piece.counts.touched += own.length;
    piece.counts.scored += found;
  }
  return {at, blocks};
}

// Scores the blocks and sets the alarms of their pairs. Where all that fire are among them, they are appended to
// `piece.active` from `fired` on, with their scores; ends[visit] is set where one ends.
template <bool listing>
void score_all(const DriftNet& net, DriftPiece& piece, const DriftCall& call, std::size_t blocks, std::size_t fired,
               std::uint32_t* ends) {
  std::uint16_t* alarms = piece.alarms[call.site].pairs.data();
  const std::size_t before = fired;
  for (std::size_t block = 0; block < blocks; ++block) {
    const DriftVisit& visit = piece.visits[piece.block_visits[block]];
    const std::uint32_t* ids = piece.picked.data() + block * pairs;
    const std::uint32_t* places = piece.places.data() + block * pairs;
    const std::uint32_t valid = piece.block_masks[block];
    const Scores z = pair_scores(net.weights.data() + visit.neuron * net.stride, call.rows, net.stride, ids) + visit.bias;
    const Scores next = AlarmRule{visit.start, visit.margin, visit.inverse}(z - net.threshold);
    *reinterpret_cast<Scores*>(piece.alarmed.data() + block * pairs) = sizes(next, valid);
    alignas(32) std::uint16_t halves[2 * pairs];
    *reinterpret_cast<Scores*>(halves) = next;
#pragma GCC unroll 8
    for (std::size_t j = 0; j < pairs; ++j) alarms[places[j]] = halves[2 * j + upper_half];
    if constexpr (listing) {
      const std::uint32_t mask = above(z, net.threshold) & valid;
      compress(z, mask, piece.active_scores.data() + (fired - before));
      fired += compress(ids, mask, piece.active.data() + fired);
      ends[piece.block_visits[block]] = static_cast<std::uint32_t>(fired);
    }
  }
}

// Goes through the slots that fire or have to be scored; use(visit, active, scores, count) gets the examples that each
// fires on, with scores unless gradients are computed.
template <bool gradients, class Use>
void visit_all(const DriftNet& net, DriftPiece& piece, const DriftCall& call, const Use& use) {
  piece.due.resize(piece.slots.size() + group);
  piece.visits.resize(batch_size);
  piece.active.resize(std::max(piece.active.size(), piece.ids.size() + group));
  const std::size_t due = find_visits(net, piece, call.site, piece.due.data());
  DriftAlarms& alarms = piece.alarms[call.site];
  std::size_t fired = 0;
  piece.firing.clear();
  piece.active_ends.clear();
  for (std::size_t first = 0; first < due;) {
    const auto [count, blocks] = pick_all(net, piece, call.site, piece.due.data() + first, due - first, !gradients);
    const std::size_t before = fired;
    first += count;
    std::uint32_t ends[batch_size];
    score_all<!gradients>(net, piece, call, blocks, fired, ends);
    std::size_t block = 0;
    for (std::size_t at = 0; at < count; ++at) {
      const DriftVisit& visit = piece.visits[at];
      std::size_t end;
      if constexpr (gradients) {
        end = fired + settle(piece.ids, alarms.pairs.data(), visit.first, visit.length, piece.active.data() + fired,
                             alarms.neurons[visit.slot]);
      } else {
        end = visit.blocks > 0 ? ends[at] : fired;
        Scores soonest = Scores{} + visit.others;
        for (std::size_t last = block + visit.blocks; block < last; ++block) {
          const Scores next = *reinterpret_cast<const Scores*>(piece.alarmed.data() + block * pairs);
          soonest = next < soonest ? next : soonest;
        }
        alarms.neurons[visit.slot] = end > fired ? -smallest(soonest) : smallest(soonest);
      }
      if (end > fired) {
        piece.firing.push_back(visit.slot);
        piece.active_ends.push_back(static_cast<std::uint32_t>(end));
        use(visit, piece.active.data() + fired, piece.active_scores.data() + (fired - before), end - fired);
      }
      fired = end;
    }
  }
  piece.counts.slots += piece.slots.size();
  piece.counts.lists += due;
  piece.counts.active += fired;
}

// sum_k += factor·w for `vectors`·16 coordinates of the rows given.
template <std::size_t vectors>
[[gnu::always_inline]] inline void spread_row(const float* w, float factor, float* sums, std::size_t stride,
                                              const std::uint32_t* ids, std::size_t count) {
  Floats weights[vectors];
#pragma GCC unroll 4
  for (std::size_t v = 0; v < vectors; ++v) weights[v] = load(w + v * lanes);
  const Floats wide = spread(factor);
  for (std::size_t k = 0; k < count; ++k) {
    float* sum = sums + ids[k] * stride;
#pragma GCC unroll 4
    for (std::size_t v = 0; v < vectors; ++v) store(sum + v * lanes, load(sum + v * lanes) + wide * weights[v]);
  }
}

// w += factor·Σ_k slope_k x_k for `vectors`·16 coordinates; returns the squares of the change by lane.
template <std::size_t vectors>
Floats descend(float* w, const float* rows, std::size_t stride, const std::uint32_t* ids, const float* slopes,
               std::size_t count, float factor) {
  Floats sums[vectors] = {}, squares{};
  for (std::size_t k = 0; k < count; ++k) {
    const float* x = rows + ids[k] * stride;
    const Floats slope = spread(slopes[ids[k]]);
#pragma GCC unroll 4
    for (std::size_t v = 0; v < vectors; ++v) sums[v] += slope * load(x + v * lanes);
  }
#pragma GCC unroll 4
  for (std::size_t v = 0; v < vectors; ++v) {
    const Floats before = load(w + v * lanes), after = before + spread(factor) * sums[v], change = after - before;
    store(w + v * lanes, after);
    squares += change * change;
  }
  return squares;
}

}  // namespace

void drift_start(const DriftNet& net, DriftPiece& piece) {
  piece.scores.resize(block_rows * net.columns);
  const std::size_t room = std::max(batch_size * 64, net.examples + 2 * group);
  for (auto* column : {&piece.picked, &piece.places}) column->resize(room);
  for (auto* column : {&piece.alarmed, &piece.active_scores}) column->resize(room);
  for (auto* column : {&piece.block_visits, &piece.block_masks}) column->resize(room / pairs + 1);
  resize_entries(net, piece, 1);
  const auto set_size = [&](std::size_t slots) {
    for (auto* column : {&piece.strains, &piece.alarms[0].neurons}) column->resize(slots);
    piece.slots.resize(slots);
  };
  set_size(piece.end - piece.begin);
  std::size_t slots = 0;
  for_scored(
      net, piece, piece.end - piece.begin, [&](std::size_t k) { return piece.begin + k; },
      [&](std::size_t k, const float* scores) {
        piece.slots[slots] = {};
        piece.slots[slots].neuron = static_cast<std::uint32_t>(piece.begin + k);
        piece.slots[slots].skin = net.first_skin;
        build_list(net, piece, slots, scores);
        slots += piece.slots[slots].length > 0;
      });
  set_size(slots);
}

void drift_pass(const DriftNet& net, DriftPiece& piece, const DriftCall& call, bool gradients) {
  ++piece.passes;
  refresh(net, piece);
  piece.values.assign(net.examples, 0.0);
  double* values = piece.values.data();
  if (!gradients)
    return visit_all<false>(net, piece, call,
                            [&](const DriftVisit& visit, const std::uint32_t* ids, const float* scores, std::size_t count) {
                              const double output = visit.output;
                              for (std::size_t k = 0; k < count; ++k) values[ids[k]] += output * scores[k];
                            });
  const std::size_t stride = net.stride;
  piece.gradients.assign(net.examples * stride, 0.0f);
  float* sums = piece.gradients.data();
  const float* weights = net.weights.data();
  visit_all<true>(net, piece, call,
                  [=](const DriftVisit& visit, const std::uint32_t* ids, const float*, std::size_t count) {
                    const double shift = static_cast<double>(visit.output) * visit.bias;
                    for (std::size_t k = 0; k < count; ++k) values[ids[k]] += shift;
                    const float *w = weights + visit.neuron * stride, output = visit.output;
                    std::size_t from = 0;
                    for (; from + 4 * lanes <= stride; from += 4 * lanes)
                      spread_row<4>(w + from, output, sums + from, stride, ids, count);
                    for (; from < stride; from += lanes) spread_row<1>(w + from, output, sums + from, stride, ids, count);
                  });
  piece.counts.summed += piece.last_active() + net.examples;
}

void drift_update(DriftNet& net, DriftPiece& piece, const DriftCall& call, const float* slopes, float rate) {
  constexpr std::size_t ahead = 8;
  const std::size_t stride = net.stride;
  const bool beyond = beyond_caches(net);
  std::size_t begin = 0;
  for (std::size_t at = 0; at < piece.firing.size(); ++at) {
    const std::size_t last = piece.firing.size() - 1;
    __builtin_prefetch(&piece.slots[piece.firing[std::min(at + 2 * ahead, last)]]);
    const DriftSlot& later = piece.slots[piece.firing[std::min(at + ahead, last)]];
    prefetch_bytes(net.weights.data() + later.neuron * stride, std::min<std::size_t>(4 * stride, 1024), beyond);
    const std::uint32_t slot = piece.firing[at];
    const std::uint32_t* ids = piece.active.data() + begin;
    const DriftSlot& own = piece.slots[slot];
    const std::size_t count = piece.active_ends[at] - begin;
    begin = piece.active_ends[at];
    float* w = net.weights.data() + own.neuron * stride;
    const float factor = -rate * own.output;
    Floats squares{};
    std::size_t from = 0;
    for (; from + 4 * lanes <= stride; from += 4 * lanes)
      squares += descend<4>(w + from, call.rows + from, stride, ids, slopes, count, factor);
    for (; from < stride; from += lanes)
      squares += descend<1>(w + from, call.rows + from, stride, ids, slopes, count, factor);
    float& strain = piece.strains[slot];
    const bool fresh = !(strain > own.limit);
    strain = (strain + norm_above(net, squares) * own.rate) * up;
    if (fresh && !(strain <= own.limit)) piece.stale.push_back(slot);
  }
  piece.counts.updated += piece.firing.size();
  piece.counts.summed += begin;
}

bool drift_missing(const DriftNet& net, const DriftPiece& piece, const DriftCall& call, std::uint64_t* pair) {
  enum Side : std::uint8_t { silent, fires, unknown };
  std::vector<std::uint8_t> sides(net.examples);
  std::size_t k = 0;
  for (std::size_t neuron = piece.begin; neuron < piece.end; ++neuron) {
    while (k < piece.slots.size() && piece.slots[k].neuron < neuron) ++k;
    std::fill(sides.begin(), sides.end(), silent);
    if (k < piece.slots.size() && piece.slots[k].neuron == neuron) {
      const DriftSlot& slot = piece.slots[k];
      if (!(piece.strains[k] <= slot.limit)) continue;  // refreshed before it is read again
      const float reading = (net.reading[call.site] + piece.strains[k]) * up;
      const float first = piece.alarms[call.site].neurons[k];
      const bool visited = std::signbit(first) || !(reading < std::abs(first));
      for (std::size_t at = slot.first; at < slot.first + slot.length; ++at) {
        const float alarm = uncut(piece.alarms[call.site].pairs[at]);
        if (visited) sides[piece.ids[at]] = !(reading < std::abs(alarm)) ? unknown : std::signbit(alarm) ? fires : silent;
      }
    }
    for (std::uint32_t i = 0; i < net.examples; ++i) {
      const std::uint32_t same[pairs] = {i, i, i, i, i, i, i, i};
      const float z = pair_scores(net.weights.data() + neuron * net.stride, call.rows, net.stride, same)[0];
      if (sides[i] == unknown || (sides[i] == fires) == (z + net.bias[neuron] > net.threshold)) continue;
      pair[0] = neuron;
      pair[1] = i;
      return true;
    }
  }
  return false;
}

}  // namespace fewfire::FEWFIRE_ISA
