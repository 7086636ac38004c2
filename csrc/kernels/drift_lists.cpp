#include "kernels/drift_lists.hpp"

#include "kernels/drift_refresh-inl.hpp"

namespace fewfire::FEWFIRE_ISA {
namespace {

// One pass over the lists: which are read and how far, refreshing those that have drifted, and the pairs that fire.

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

// Which lists the call has to read, and how far; first refreshes those too short for it or grown too long.
void plan(const DriftNet& net, DriftPiece& piece, const DriftCall& call) {
  tidy(net, piece);
  const auto slots = static_cast<std::uint32_t>(piece.slots.size());
  piece.stale.clear();
  piece.visits.clear();
  for (std::uint32_t k = 0; k < slots; ++k) {
    const DriftBound& bound = piece.bounds[k];
    const float depth = need(net, bound, call, bound.moved);
    if (depth < bound.top) continue;
    DriftSlot& slot = piece.slots[k];
    DriftVisit visit{k, slot.neuron, slot.first, slot.length, net.bias[slot.neuron], net.output[slot.neuron], 0, false};
    const float still = need(net, bound, call, 0.0f);
    const bool enough = in_range(slot, depth);
    bool stale = true;
    if (enough || (slot.length == net.examples && in_range(slot, still))) {
      if (enough) visit.length = entries_to(net, slot, depth);
      slot.excess += static_cast<float>(visit.length - entries_to(net, slot, still));
      stale = slot.excess > net.refresh_cost;
      if (stale && bound.moved * call.norm < 0.25f * slot.skin) slot.skin *= 0.5f;
    } else {
      slot.skin *= 2.0f;
    }
    if (stale)
      piece.stale.push_back(static_cast<std::uint32_t>(piece.visits.size()));
    else
      set_cutoff(net, piece, call, depth, visit);
    piece.visits.push_back(visit);
  }
  for_scored(
      net, piece, piece.stale.size(), [&](std::size_t k) { return piece.visits[piece.stale[k]].neuron; },
      [&](std::size_t k, const float* scores) {
        DriftVisit& visit = piece.visits[piece.stale[k]];
        DriftSlot& slot = piece.slots[visit.slot];
        build_list(net, piece, slot, piece.bounds[visit.slot], scores);
        encode(net, piece, visit.slot);
        const float depth = need(net, piece.bounds[visit.slot], call, 0.0f);
        visit.first = slot.first;
        visit.length = entries_to(net, slot, depth);
        set_cutoff(net, piece, call, depth, visit);
        piece.emptied |= slot.length == 0;
      });
  std::erase_if(piece.visits, [](const DriftVisit& visit) { return visit.length == 0; });
  piece.counts.slots += slots;
}

constexpr std::size_t ahead = 8;  // lists between screening one and scoring it, while its row of weights arrives

void prefetch_row(const DriftNet& net, const DriftVisit& visit) {
  const float* w = net.weights.data() + visit.neuron * net.stride;
  for (std::size_t at = 0; at < std::min<std::size_t>(net.stride, 256); at += lanes) __builtin_prefetch(w + at);
}

// Reads the lists one after the other; use(visit, w, ids, scores, count) gets the pairs of each that fire.
template <class Use>
void visit_all(const DriftNet& net, DriftPiece& piece, const DriftCall& call, const Use& use) {
  std::size_t touched = 0, screened = 0, longest = 0, scored = 0, rows = 0, fired = 0;
  for (const DriftVisit& visit : piece.visits) {
    touched += visit.length;
    if (visit.screened) screened += visit.length;
    longest = std::max<std::size_t>(longest, visit.length);
  }
  piece.active.resize(std::max(touched + pairs, piece.active.size()));
  piece.active_scores.resize(longest + pairs);
  const std::size_t room = longest + pairs;
  piece.picked.resize(std::max(ahead * room, piece.picked.size()));
  piece.active_ends.resize(piece.visits.size());
  const std::uint32_t* left[ahead];  // what screening leaves of each list
  std::size_t counts[ahead];
  for (std::size_t next = 0; next < piece.visits.size() + ahead; ++next) {
    const std::size_t ring = next % ahead;
    if (next >= ahead) {
      const std::size_t at = next - ahead, count = counts[ring];
      if (count > 0) {
        const DriftVisit& visit = piece.visits[at];
        const float* w = net.weights.data() + visit.neuron * net.stride;
        std::uint32_t* active = piece.active.data() + fired;
        const std::size_t found = select_active(w, visit.bias, net.threshold, call.rows, net.stride, left[ring], count,
                                                active, piece.active_scores.data());
        use(visit, w, active, piece.active_scores.data(), found);
        fired += found;
        scored += count;
        ++rows;
      }
      piece.active_ends[at] = static_cast<std::uint32_t>(fired);
    }
    if (next >= piece.visits.size()) continue;
    const DriftVisit& visit = piece.visits[next];
    if (next + 4 < piece.visits.size()) __builtin_prefetch(piece.ids.data() + piece.visits[next + 4].first);
    left[ring] = piece.ids.data() + visit.first;
    counts[ring] = visit.length;
    if (visit.screened) {
      std::uint32_t* kept = piece.picked.data() + ring * room;
      counts[ring] = screen(piece.code_rows.data() + visit.slot * net.code_stride, call.codes, net.code_stride,
                            visit.cutoff, left[ring], visit.length, kept);
      left[ring] = kept;
    }
    if (counts[ring] > 0) prefetch_row(net, visit);
  }
  piece.counts.active += fired;
  piece.counts.touched += touched;
  piece.counts.screened += screened;
  piece.counts.scored += scored;
  piece.counts.lists += piece.visits.size();
  piece.counts.rows += rows;
}

// The change of a neuron's weights from the examples it fired on.

// Puts the ids in ascending order: sums over them then do not depend on the order of the list. A few are sent straight
// to their ranks, many go through a set of bits.
void sort_ids(std::uint32_t* ids, std::size_t count, std::vector<std::uint64_t>& bits) {
  if (count <= lanes) {
    alignas(64) std::uint32_t all[lanes];
    for (std::size_t k = 0; k < lanes; ++k) all[k] = k < count ? ids[k] : 0xffffffffu;
    for (std::size_t k = 0; k < count; ++k) ids[count_below(all, all[k])] = all[k];
    return;
  }
  std::size_t low = bits.size(), high = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t word = ids[k] / 64;
    bits[word] |= std::uint64_t{1} << ids[k] % 64;
    low = std::min(low, word);
    high = std::max(high, word);
  }
  for (std::size_t word = low; word <= high; ++word) {
    for (std::uint64_t left = bits[word]; left != 0; left &= left - 1)
      *ids++ = static_cast<std::uint32_t>(64 * word + static_cast<std::size_t>(__builtin_ctzll(left)));
    bits[word] = 0;
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
  piece.picked.resize(2 * net.examples);
  piece.bits.assign((net.examples + 63) / 64, 0);
  for_scored(
      net, piece, piece.end - piece.begin, [&](std::size_t k) { return piece.begin + k; },
      [&](std::size_t k, const float* scores) {
        DriftSlot slot{};
        DriftBound bound{};
        slot.neuron = static_cast<std::uint32_t>(piece.begin + k);
        slot.skin = net.first_skin;
        build_list(net, piece, slot, bound, scores);
        if (slot.length == 0) return;
        piece.slots.push_back(slot);
        piece.bounds.push_back(bound);
      });
  piece.codes.resize(piece.slots.size());
  piece.code_rows.assign(piece.slots.size() * net.code_stride, 0);
  for (std::size_t slot = 0; slot < piece.slots.size(); ++slot) encode(net, piece, slot);
}

void drift_pass(const DriftNet& net, DriftPiece& piece, const DriftCall& call, bool gradients) {
  plan(net, piece, call);
  const std::size_t stride = net.stride;
  const std::uint64_t before = piece.counts.active;
  piece.values.assign(net.examples, 0.0);
  const auto add_values = [&](const DriftVisit& visit, const std::uint32_t* ids, const float* scores, std::size_t count) {
    for (std::size_t k = 0; k < count; ++k) piece.values[ids[k]] += static_cast<double>(visit.output) * scores[k];
  };
  if (!gradients)
    return visit_all(net, piece, call,
                     [&](const DriftVisit& visit, const float*, const std::uint32_t* ids, const float* scores,
                         std::size_t count) { add_values(visit, ids, scores, count); });
  piece.gradients.assign(net.examples * stride, 0.0f);
  float* sums = piece.gradients.data();
  visit_all(net, piece, call,
            [&](const DriftVisit& visit, const float* w, const std::uint32_t* ids, const float* scores,
                std::size_t count) {
              add_values(visit, ids, scores, count);
              const Floats output = spread(visit.output);
              for (std::size_t k = 0; k < count; ++k)
                for (std::size_t at = 0; at < stride; at += lanes) {
                  float* sum = sums + ids[k] * stride + at;
                  store(sum, load(sum) + output * load(w + at));
                }
            });
  piece.counts.summed += piece.counts.active - before;
}

void drift_codes(const DriftNet& net, DriftCall& call, std::uint8_t* codes) {
  if constexpr (!can_screen) return;
  float largest = 0.0f;
  for (std::size_t k = 0; k < net.examples * net.stride; ++k) largest = std::max(largest, std::abs(call.rows[k]));
  const float scale = largest > 1e-30f ? largest / 127.0f : 1.0f, inverse = 1.0f / scale;
  float farthest = 0.0f;
  for (std::size_t i = 0; i < net.examples; ++i) {
    Floats squares{};
    for (std::size_t at = 0; at < net.stride; at += lanes)
      for (std::size_t k = 0; k < lanes; ++k) {
        const float x = call.rows[i * net.stride + at + k], rounded = std::nearbyint(x * inverse);
        const float error = x - scale * rounded;
        squares[k] += error * error;
        codes[i * net.code_stride + at + k] = static_cast<std::uint8_t>(static_cast<std::int32_t>(rounded) + 128);
      }
    farthest = std::max(farthest, sum_lanes(squares));
  }
  call.code_scale = scale;
  // Where x and scale·code cancel, their difference keeps the rounding of the product.
  call.code_error = std::sqrt(farthest) * (1.0f + net.rounding) + net.rounding * net.norm_limit + tiny;
}

void drift_update(DriftNet& net, DriftPiece& piece, const DriftCall& call, const float* slopes, float rate) {
  const std::size_t stride = net.stride;
  for (std::size_t at = 0; at < piece.visits.size(); ++at) {
    const std::uint32_t begin = at == 0 ? 0 : piece.active_ends[at - 1], end = piece.active_ends[at];
    const std::size_t soon = at + 2 * ahead;  // most lists read did not fire
    if (soon < piece.visits.size() && piece.active_ends[soon] > piece.active_ends[soon - 1])
      prefetch_row(net, piece.visits[soon]);
    if (begin == end) continue;
    const DriftVisit& visit = piece.visits[at];
    float* w = net.weights.data() + visit.neuron * stride;
    std::uint32_t* ids = piece.active.data() + begin;
    const std::size_t count = end - begin;
    sort_ids(ids, count, piece.bits);
    const float factor = -rate * visit.output;
    Floats squares{};
    std::size_t from = 0;
    for (; from + 4 * lanes <= stride; from += 4 * lanes)
      squares += descend<4>(w + from, call.rows + from, stride, ids, slopes, count, factor);
    for (; from < stride; from += lanes)
      squares += descend<1>(w + from, call.rows + from, stride, ids, slopes, count, factor);
    float& moved = piece.bounds[visit.slot].moved;
    moved = (moved + norm_above(net, squares)) * up;
    piece.counts.updated += 1;
    piece.counts.summed += count;
  }
}

bool drift_missing(const DriftNet& net, const DriftPiece& piece, const DriftCall& call, std::uint64_t* pair) {
  std::vector<std::uint32_t> all(net.examples), active(net.examples + pairs), kept(net.examples + pairs);
  std::vector<float> scores(net.examples + pairs);
  std::vector<std::uint8_t> listed(net.examples);
  for (std::uint32_t i = 0; i < net.examples; ++i) all[i] = i;
  std::size_t k = 0;
  for (std::size_t neuron = piece.begin; neuron < piece.end; ++neuron) {
    while (k < piece.slots.size() && piece.slots[k].neuron < neuron) ++k;
    std::fill(listed.begin(), listed.end(), std::uint8_t{0});
    if (k < piece.slots.size() && piece.slots[k].neuron == neuron) {
      const DriftSlot& slot = piece.slots[k];
      const float depth = need(net, piece.bounds[k], call, piece.bounds[k].moved);
      if (!in_range(slot, depth)) continue;  // refreshed before it is read again
      DriftVisit visit{static_cast<std::uint32_t>(k), slot.neuron, slot.first, 0, net.bias[neuron], 0.0f, 0, false};
      if (depth >= piece.bounds[k].top) visit.length = entries_to(net, slot, depth);
      set_cutoff(net, piece, call, depth, visit);
      const std::uint32_t* ids = piece.ids.data() + slot.first;
      std::size_t count = visit.length;
      if (visit.screened) {
        count = screen(piece.code_rows.data() + k * net.code_stride, call.codes, net.code_stride, visit.cutoff, ids, count,
                       kept.data());
        ids = kept.data();
      }
      for (std::size_t j = 0; j < count; ++j) listed[ids[j]] = 1;
    }
    const std::size_t count = select_active(net.weights.data() + neuron * net.stride, net.bias[neuron], net.threshold,
                                            call.rows, net.stride, all.data(), all.size(), active.data(), scores.data());
    for (std::size_t j = 0; j < count; ++j)
      if (!listed[active[j]]) {
        pair[0] = neuron;
        pair[1] = active[j];
        return true;
      }
  }
  return false;
}

}  // namespace fewfire::FEWFIRE_ISA
