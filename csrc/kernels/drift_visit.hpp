// One pass over the lists: which are read and how far, refreshing those that have drifted, and the pairs that fire.
#pragma once

#include "kernels/drift_screen.hpp"

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

}  // namespace
}  // namespace fewfire::FEWFIRE_ISA
