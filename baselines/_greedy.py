"""The page of highest linear value among many, exactly and without asking all of them.

The value of a page is the product of its state with a weight vector that may change at
every step. By Cauchy and Schwarz a value can have risen by no more than the way the
weights went since it was computed, times the length of the state. So values are kept,
and only those that may reach the best are computed again.

All products are summed in one order, compiled without liberties, so that equal states
have equal values to the last bit: ties are real, and the tie rule decides them.
"""

from __future__ import annotations

import math

import numpy as np

from gym_webforage.world.compile import compiled

VALUE, LENGTH, WAY = range(3)  # columns of a page's facts; WAY: when VALUE was computed
OLDEST, NEWEST, RANDOM = range(3)

# Far above the rounding errors of a sum of a few thousand products.
SLACK = 1e-12
# Weights beyond it are refused: products and squares of smaller ones stay finite.
LARGEST = 1e100


@compiled
def product(rows, number, weights):
    """Return the value of a page; four sums, since one would wait for itself."""
    k = len(weights)
    a = b = c = d = 0.0
    for i in range(0, k - 3, 4):
        a += rows[number, i] * weights[i]
        b += rows[number, i + 1] * weights[i + 1]
        c += rows[number, i + 2] * weights[i + 2]
        d += rows[number, i + 3] * weights[i + 3]
    for i in range(k - k % 4, k):
        a += rows[number, i] * weights[i]
    return (a + b) + (c + d)


@compiled
def remember(numbers, states, rows, facts, weights, way):
    """Store the states of pages, and their values by the present weights."""
    for j in range(len(numbers)):
        number = numbers[j]
        square = 0.0
        for i in range(len(weights)):
            rows[number, i] = states[j, i]
            square += np.float64(states[j, i]) * states[j, i]
        facts[number, VALUE] = product(rows, number, weights)
        facts[number, LENGTH] = math.sqrt(square)
        facts[number, WAY] = way[0]


@compiled
def choose(choices, rows, facts, weights, way, tie, ties):
    """Return the choice of highest value; how many share it, and those in ``ties``.

    ``ties`` is written for the tie rule RANDOM only.
    """
    square = 0.0
    for i in range(len(weights)):
        square += weights[i] * weights[i]
    slack = 2 * SLACK * math.sqrt(square)
    here = way[0]
    # Whoever was best is a good guess, and spares most others.
    chosen = choices[0]
    for j in range(1, len(choices)):
        if facts[choices[j], VALUE] > facts[chosen, VALUE]:
            chosen = choices[j]
    if facts[chosen, WAY] != here:
        facts[chosen, VALUE] = product(rows, chosen, weights)
        facts[chosen, WAY] = here
    best = facts[chosen, VALUE]
    count = 0
    for j in range(len(choices)):
        number = choices[j]
        value = facts[number, VALUE]
        gone = here - facts[number, WAY]
        if gone != 0:
            rise = facts[number, LENGTH] * (gone * (1 + SLACK) + slack)
            if value + rise < best:
                continue
            value = product(rows, number, weights)
            facts[number, VALUE] = value
            facts[number, WAY] = here
        if value < best:
            continue
        if value > best:
            best = value
            count = 0
        if count == 0 or (number < chosen) == (tie == OLDEST):
            chosen = number
        if tie == RANDOM:
            ties[count] = number
        count += 1
    return chosen, count


@compiled
def correct(rows, before, after, reward, gamma, alpha, weights, way, old):
    """Update the weights by temporal difference, Algorithm 4; say whether it was done.

    It is not, and the weights stay, if one of them would pass LARGEST. ``old`` is room
    for as many weights.
    """
    error = reward + gamma * product(rows, after, weights)
    error -= product(rows, before, weights)
    step = alpha * error
    done = True
    changed = False
    square = 0.0
    for i in range(len(weights)):
        old[i] = weights[i]
        weights[i] += step * rows[before, i]
        change = weights[i] - old[i]
        square += change * change
        changed = changed or change != 0
        done = done and abs(weights[i]) <= LARGEST  # not a number is not, either
    if not done:
        weights[:] = old
    elif changed:
        # One step up, lest a small change is lost in a long way.
        way[0] = np.nextafter(way[0] + math.sqrt(square) * (1 + SLACK), np.inf)
    return done
