/* heaps.pml - a model of what threads do to each other's heaps in tlfl; checked by run.sh with spin.
 *
 * One size class, small numbers of threads, heaps, spans and granules; every interleaving. A step of the model is an
 * access to what several threads touch (an atomic load, store, exchange or compare-and-swap of the C code, or entering
 * the central lock), together with what its thread does in private around it. The name at each inline is that of the C
 * function. What only decides when something happens (loads, posts, ticks, room) is left open: the model does it at any
 * time or never.
 *
 * What is checked, by assertions at every step:
 *   - a block is in one place: `loc` is advanced at every hand-over, from the one place it may be in
 *   - nothing is handed out twice, and no granule goes to the pool while a block of it is live or on the way
 *   - a heap and its spans are only touched by who may: `user`
 *   - at the end, after all threads are gone, all blocks are freed and one trim has run, the pool has every granule and
 *     every structure is unused: nothing is lost
 * and by spin itself that no thread waits for ever.
 *
 * Left out: carving (all blocks of a span are carved), large spans (their shelves work as these), the clock, NUMA. Memory
 * is sequentially consistent here; the orderings are for ThreadSanitizer (tests/tlfl/remote.c, stress.c).
 *
 * Parameters: HEAPS, SPANS (structures), GRANULES (memory, a span each), CAPACITY (blocks of a span), KEEP and GIVE (whether
 * a span that becomes empty may go to the shelf, to the pool), START (the threads, see `thread`). BUG_... plant an error
 * each: run.sh expects spin to find it.
 */
#define WAKE     1 /* frees from FULL to AVAIL */
#define BLOCKS   (GRANULES * CAPACITY)
#define NIL      15
#define GRANULE(block) ((block) / CAPACITY)

/* Where a block is. SENT: freed, in an outbox, a remote list, or the hands of who puts it back. */
#define POOL 0
#define FREE 1
#define LIVE 2
#define SENT 3

/* span->state */
#define UNUSED  0
#define CURRENT 1
#define FULL    2
#define AVAIL   3
#define EMPTY   4
#define STOLEN  5

/* heap->state */
#define NONE   0
#define RUNS   1 /* HEAP_LIVE */
#define IDLE   2

byte loc[BLOCKS];  /* what the model knows, and the code does not */
byte next[BLOCKS]; /* block->next */
byte live;         /* blocks that are LIVE */

byte map[GRANULES];

byte span_free[SPANS], span_next[SPANS], span_run[SPANS], span_out[SPANS], span_counted[SPANS];
byte span_owner[SPANS], span_state[SPANS];
bool span_open[SPANS]; /* limit != 0 */

byte remote[HEAPS], shelf[HEAPS], stolen[HEAPS], current[HEAPS];
byte own[HEAPS * GRANULES];
byte heap_state[HEAPS];
bool idle[HEAPS]; /* in the idle list */
byte user[HEAPS]; /* the thread that may touch what is the owner's; 0: nobody. What the model knows */

bool central;

/* ---- lock.c ---- */

inline central_enter()
{
    atomic {
        if
        :: depth > 0 -> depth++
        :: depth == 0 && !central -> central = true; depth = 1
        fi
    }
}

inline central_leave()
{
    atomic {
        depth--;
        if
        :: depth == 0 -> central = false
        :: else
        fi
    }
}

/* ---- remote.c: send ---- */

/* remote_push: a load, and a compare-and-swap until it succeeds; `first` to `last` is private till then. */
inline remote_push(to, first, last)
{
    atomic { head = remote[to]; next[last] = head };
    do
    :: atomic { remote[to] == head -> remote[to] = first; head = NIL; break }
    :: atomic { remote[to] != head -> head = remote[to]; next[last] = head }
    od
}

/* outbox_flush */
inline outbox_flush()
{
    if
    :: box_to != NIL ->
        d_step { target = box_to; box_to = NIL; s = box_first; n = box_last; box_first = NIL; box_last = NIL };
        remote_push(target, s, n);
        atomic { target = NIL; s = NIL; n = NIL }
    :: else
    fi
}

/* tlfl__remote_free of block b, span s. An outbox may go off at any time. */
inline remote_free()
{
    to = span_owner[s]; /* span_owner: it may have changed since the caller looked */
    if
    :: box_to == to -> d_step { next[b] = box_first; box_first = b }
    :: else ->
        outbox_flush();
        d_step { box_to = to; box_first = b; box_last = b }
    fi;
    d_step { b = NIL; s = NIL; to = NIL };
    if
    :: outbox_flush()
    :: skip
    fi
}

/* ---- spans in and out: heap.c, under the central lock ---- */

/* The granule of span s goes to the pool; all its blocks are `where`. */
inline pool_give(where)
{
    map[span_run[s]] = NIL;
    for (k : 0 .. CAPACITY - 1) {
        assert(loc[span_run[s] * CAPACITY + k] == where);
        loc[span_run[s] * CAPACITY + k] = POOL
    }
    k = 0
}

/* tlfl__span_give */
inline span_give()
{
    span_state[s] = UNUSED; span_open[s] = false; span_owner[s] = NIL; span_free[s] = NIL; span_next[s] = NIL;
    span_run[s] = NIL; span_out[s] = 0
}

/* tlfl__heap_release of span s */
inline heap_release(h)
{
    central_enter();
    d_step {
        assert(user[h] == _pid && span_owner[s] == h);
        own[h * GRANULES + span_run[s]] = NIL;
        pool_give(FREE);
        span_give();
        s = NIL
    };
    central_leave()
}

/* heap_new_span: s, or NIL when there is no memory */
inline heap_new_span(h)
{
    central_enter();
    d_step {
        assert(user[h] == _pid);
        s = 0; k = 0;
        do
        :: s < SPANS && span_state[s] != UNUSED -> s++
        :: k < GRANULES && map[k] != NIL -> k++
        :: else -> break
        od;
        if
        :: s < SPANS && k < GRANULES ->
            span_owner[s] = h; span_run[s] = k; span_state[s] = EMPTY; map[k] = s; own[h * GRANULES + k] = s;
            span_free[s] = k * CAPACITY;
            for (k : 0 .. CAPACITY - 1) {
                assert(loc[span_run[s] * CAPACITY + k] == POOL);
                loc[span_run[s] * CAPACITY + k] = FREE;
                next[span_run[s] * CAPACITY + k] = (k + 1 < CAPACITY -> span_run[s] * CAPACITY + k + 1 : NIL)
            }
        :: else -> s = NIL
        fi;
        k = 0
    };
    central_leave()
}

/* tlfl__heap_collect */
inline heap_collect(h)
{
    if
    :: stolen[h] != NIL -> /* heap_stolen */
        central_enter();
        d_step {
            assert(user[h] == _pid);
            s = stolen[h]; stolen[h] = NIL;
            do
            :: s != NIL ->
                k = span_next[s];
                if
                :: own[h * GRANULES + span_run[s]] == s -> own[h * GRANULES + span_run[s]] = NIL
                :: else
                fi;
                span_give();
                s = k
            :: else -> break
            od;
            k = 0; s = NIL
        };
        central_leave()
    :: else
    fi
}

/* ---- shelf.h ---- */

/* shelf_put of span s: an exchange and a store */
inline shelf_put(h)
{
    atomic { span_next[s] = shelf[h]; shelf[h] = NIL };
    d_step { shelf[h] = s; s = NIL }
}

/* shelf_take: s; a load, an exchange and a store */
inline shelf_take(h)
{
    if
    :: shelf[h] == NIL -> s = NIL
    :: shelf[h] != NIL ->
#ifdef BUG_SHELF /* a load and a store instead */
        s = shelf[h];
#else
        atomic { s = shelf[h]; shelf[h] = NIL };
#endif
        if
        :: s != NIL -> shelf[h] = span_next[s]
        :: else
        fi
    fi
}

/* ---- the owner: span.h, heap.c ---- */

/* span_push of block b to span s, and tlfl__heap_event. */
inline heap_put(h)
{
    d_step {
        assert(user[h] == _pid && span_owner[s] == h && span_run[s] == GRANULE(b) && loc[b] == SENT && span_out[s] > 0);
        loc[b] = FREE; next[b] = span_free[s]; span_free[s] = b; b = NIL;
        span_out[s]--;
        vacant = false;
        if
        :: span_out[s] != 0
        :: span_out[s] == 0 && span_state[s] == CURRENT -> span_out[s] = CAPACITY
        :: span_out[s] == 0 && span_state[s] == FULL -> span_out[s] = CAPACITY - WAKE; span_state[s] = AVAIL
        :: span_out[s] == 0 && span_state[s] == AVAIL -> span_open[s] = false; span_state[s] = EMPTY; vacant = true
        :: else -> assert(false)
        fi
    };
    if
    :: vacant && KEEP -> vacant = false; shelf_put(h)
    :: vacant && GIVE -> vacant = false; heap_release(h)
    :: !vacant -> s = NIL
    fi
}

/* tlfl__heap_unshelve: s */
inline heap_unshelve(h)
{
    d_step {
        assert(user[h] == _pid);
        s = NIL;
        for (k : 0 .. SPANS - 1) {
            if
            :: s == NIL && span_owner[k] == h && span_state[k] == AVAIL -> s = k
            :: else
            fi
        }
        k = 0
    }
}

/* tlfl__heap_settle: retires the current span, clears the shelf */
inline heap_settle(h)
{
    if
    :: current[h] != NIL ->
        d_step {
            assert(user[h] == _pid && span_state[current[h]] == CURRENT);
            s = current[h]; current[h] = NIL;
            k = span_free[s]; span_out[s] = CAPACITY;
            do
            :: k != NIL -> span_out[s]--; k = next[k]
            :: else -> break
            od;
            k = 0;
            vacant = false;
            if
            :: span_out[s] == 0 -> vacant = true
            :: span_out[s] != 0 && span_free[s] != NIL -> span_state[s] = AVAIL
            :: else -> span_out[s] = WAKE; span_state[s] = FULL
            fi
        };
        if
        :: vacant -> vacant = false; heap_release(h)
        :: else -> s = NIL
        fi
    :: else
    fi;
    do
    :: shelf_take(h);
        if
        :: s == NIL -> break
        :: else -> heap_release(h)
        fi
    od
}

/* ---- remote.c: receive ---- */

/* The span of block b for the heap h: heap_own and span_holds, else map_find. */
inline span_find(h)
{
    s = own[h * GRANULES + GRANULE(b)];
    if
    :: s != NIL && span_open[s] && span_run[s] == GRANULE(b) -> to = h
    :: else -> s = map[GRANULE(b)]; assert(s != NIL); to = span_owner[s]
    fi
}

/* tlfl__remote_drain: b and n walk the private chain */
inline remote_drain(h)
{
    if
    :: remote[h] == NIL /* remote_pending */
    :: remote[h] != NIL ->
#ifdef BUG_POP /* one at a time, by a compare-and-swap */
        do
        :: atomic { b = remote[h]; n = (b == NIL -> NIL : next[b]) };
            if
            :: b == NIL -> break
            :: atomic { b != NIL && remote[h] == b -> remote[h] = n; n = NIL }
            :: atomic { b != NIL && remote[h] != b -> b = NIL; n = NIL }
            fi;
            if
            :: b == NIL
            :: b != NIL ->
#else
        atomic { b = remote[h]; remote[h] = NIL }; /* remote_take */
        do
        :: b == NIL -> break
        :: b != NIL ->
            n = next[b];
#endif
            atomic { span_find(h) };
#ifdef BUG_LOOKUP
            to = h;
#endif
            if
            :: to != h ->
                to = span_owner[s];
                remote_push(to, b, b);
                atomic { s = NIL; to = NIL }
            :: else ->
                to = NIL;
                heap_put(h)
            fi;
#ifdef BUG_POP
            fi;
            b = NIL
#else
            d_step { b = n; n = NIL }
#endif
        od
    fi
}

/* ---- thief: remote.c ---- */

#define DONE 14 /* STEAL_DONE */

/* tlfl__remote_steal */
inline remote_steal(v)
{
    central_enter();
    if
    :: heap_state[v] == RUNS && remote[v] != NIL ->
        atomic { b = remote[v]; remote[v] = NIL }; /* remote_take */
        d_step {                                   /* steal_count: all of it changes under the lock only */
            n = b;
            do
            :: n != NIL ->
                s = map[GRANULE(n)];
                assert(s != NIL && loc[n] == SENT);
                if
                :: span_owner[s] == v -> span_counted[s]++
                :: else
                fi;
                n = next[n]
            :: else -> break
            od;
            s = NIL
        };
        do /* steal_sort */
        :: b == NIL -> break
        :: b != NIL ->
            d_step { n = next[b]; s = map[GRANULE(b)]; assert(s != NIL) };
            if
            :: span_counted[s] == DONE
#ifdef BUG_CURRENT /* whatever the state */
            :: span_counted[s] == CAPACITY
#else
            :: span_counted[s] == CAPACITY && span_state[s] == FULL
#endif
                -> d_step { span_counted[s] = DONE; span_next[s] = whole; whole = s }
            :: else ->
                d_step { span_counted[s] = 0; to = span_owner[s] };
                remote_push(to, b, b);
                to = NIL
            fi;
            d_step { b = n; n = NIL; s = NIL }
        od
    :: else
    fi;
    do
    :: whole != NIL ->
        d_step {
            s = whole; whole = span_next[s];
            span_counted[s] = 0; span_open[s] = false; span_state[s] = STOLEN;
            pool_give(SENT);
#ifdef BUG_STRUCTURE /* the structure goes as well */
            span_give();
#else
            span_next[s] = stolen[v]; stolen[v] = s;
#endif
            s = NIL
        }
    :: else -> break
    od;
    central_leave()
}

/* tlfl__remote_clear */
inline remote_clear(v)
{
    central_enter();
    if
    :: shelf[v] != NIL ->
        atomic { n = shelf[v]; shelf[v] = NIL }; /* shelf_take_all */
        do
        :: n != NIL ->
            d_step {
                s = n; n = span_next[s];
                assert(span_state[s] == EMPTY);
                pool_give(FREE);
                span_next[s] = stolen[v]; stolen[v] = s;
                s = NIL
            }
        :: else -> break
        od
    :: else
    fi;
    central_leave()
}

/* ---- idle heaps: thread.c ---- */

/* idle_settle, under the central lock */
inline idle_settle(v)
{
    d_step { assert(user[v] == 0 && depth > 0); user[v] = _pid };
    heap_collect(v);
    remote_drain(v);
    heap_settle(v);
    atomic { assert(user[v] == _pid); user[v] = 0 }
}

/* tlfl__thread_adopt: s */
inline thread_adopt(h)
{
    central_enter();
    v = 0;
    do
    :: v == HEAPS || s != NIL -> break
    :: v < HEAPS && s == NIL && !idle[v] -> v++
    :: v < HEAPS && s == NIL && idle[v] ->
        idle_settle(v);
        d_step { user[v] = _pid };
        heap_unshelve(v);
        d_step { user[v] = 0 };
        if
        :: s != NIL ->
            d_step { own[v * GRANULES + span_run[s]] = NIL; own[h * GRANULES + span_run[s]] = s; span_owner[s] = h }
        :: else
        fi;
        v++
    od;
    v = 0;
    central_leave()
}

/* tlfl__thread_sweep, without the sleepers: those are the action `thefts` */
inline thread_sweep()
{
    central_enter();
    v = 0;
    do
    :: v < HEAPS && idle[v] -> idle_settle(v); v++
    :: v < HEAPS && !idle[v] -> v++
    :: v == HEAPS -> break
    od;
    v = 0;
    central_leave()
}

/* tlfl__thread_trim */
inline thread_trim(h)
{
    outbox_flush();
    central_enter();
    round = 0;
    do
    :: round < 2 ->
        v = 0;
        do
        :: v < HEAPS ->
            if
            :: heap_state[v] == IDLE -> idle_settle(v)
            :: heap_state[v] != IDLE && v != h -> remote_steal(v); remote_clear(v)
            :: v == h -> skip
            fi;
            v++
        :: else -> break
        od;
        heap_collect(h);
        remote_drain(h);
        heap_settle(h);
        round++
    :: else -> break
    od;
    v = 0; round = 0;
    central_leave()
}

/* ---- a block: api.c ---- */

/* span_pop: b */
inline span_pop(h)
{
    atomic {
        assert(user[h] == _pid);
        s = current[h];
        b = (s == NIL -> NIL : span_free[s]);
        if
        :: b != NIL ->
            assert(span_owner[s] == h && map[GRANULE(b)] == s && loc[b] == FREE);
            span_free[s] = next[b]; loc[b] = LIVE; live++; s = NIL
        :: else
        fi
    }
}

/* malloc_fast and tlfl__heap_refill */
inline thread_malloc(h)
{
    span_pop(h);
    if
    :: b == NIL -> heap_collect(h); remote_drain(h); span_pop(h)
    :: else
    fi;
    if
    :: b == NIL ->
        if
        :: s != NIL -> d_step { span_out[s] = WAKE; span_state[s] = FULL } /* and still heap->current */
        :: else
        fi;
        heap_unshelve(h);
        if
        :: s == NIL ->
            shelf_take(h);
            if
            :: s == NIL -> current[h] = NIL; thread_adopt(h) /* heap_find_span */
            :: else
            fi;
            if
            :: s == NIL -> heap_new_span(h)
            :: else
            fi
        :: else
        fi;
        if
        :: s != NIL -> d_step { span_open[s] = true; span_state[s] = CURRENT; span_out[s] = CAPACITY; current[h] = s }
        :: else
        fi;
        span_pop(h)
    :: else
    fi;
    d_step { b = NIL; s = NIL }
}

/* free_fast to free_small_other, of block b */
inline thread_free(h)
{
    atomic { span_find(h) };
    if
    :: to == h -> d_step { to = NIL; own[h * GRANULES + span_run[s]] = s }; heap_put(h)
    :: else -> to = NIL; remote_free()
    fi
}

/* ---- life of a thread: thread.c ---- */

/* thread_find_heap: the heap h, under the central lock */
inline thread_find_heap()
{
    d_step {
        h = 0;
        do
        :: h < HEAPS && !idle[h] -> h++
        :: else -> break
        od;
        if
        :: h == HEAPS ->
            h = 0;
            do
            :: h < HEAPS && heap_state[h] != NONE -> h++
            :: else -> break
            od
        :: else
        fi;
        assert(h < HEAPS && user[h] == 0);
        idle[h] = false;
        user[h] = _pid
    }
}

/* thread_enter */
inline thread_enter()
{
    central_enter();
    thread_find_heap();
#ifdef BUG_LATE
    central_leave();
    heap_state[h] = RUNS
#else
    heap_state[h] = RUNS;
    central_leave()
#endif
}

/* idle_put, under the central lock */
inline idle_put()
{
    d_step { assert(user[h] == _pid); user[h] = 0; idle[h] = true; heap_state[h] = IDLE; h = NIL }
}

/* thread_leave */
inline thread_leave()
{
    outbox_flush();
    central_enter();
    idle_put();
    central_leave()
}

/* ---- what threads do ---- */

/* A program that frees a live block: any. */
#define TAKE(block) \
    :: atomic { \
        frees > 0 && block < BLOCKS && loc[block % BLOCKS] == LIVE -> \
        frees--; live--; b = block; loc[block % BLOCKS] = SENT \
    }

/* A thread that does each of these at most so many times, in any order: mallocs, frees, ticks, thefts from any heap, trims,
 * new lives (it ends and another begins). `all`: it goes on until no block is live. `late`: mallocs and frees after its
 * last destructor. */
proctype thread(byte mallocs; byte frees; byte ticks; byte thefts; byte trims; byte lives; bool all; byte late)
{
    byte h = NIL, b = NIL, n = NIL, s = NIL, to = NIL, head = NIL, target = NIL, whole = NIL;
    byte box_to = NIL, box_first = NIL, box_last = NIL;
    byte k, v, depth, round;
    bool vacant, over;

    thread_enter();
    do
    :: mallocs > 0 ->
        mallocs--;
        if
        :: over -> central_enter(); thread_find_heap() /* thread_borrow */
        :: else
        fi;
        thread_malloc(h);
        if
        :: over -> idle_put(); central_leave()
        :: else
        fi
    :: if
        TAKE(0)
        TAKE(1)
        TAKE(2)
        TAKE(3)
        TAKE(4)
        TAKE(5)
        fi;
        if
        :: over -> /* a thread without a heap pushes each block by itself */
            s = map[GRANULE(b)];
            to = span_owner[s];
            remote_push(to, b, b);
            atomic { b = NIL; s = NIL; to = NIL }
        :: else -> thread_free(h)
        fi
    :: ticks > 0 -> ticks--; outbox_flush(); heap_collect(h); thread_sweep()
    :: thefts > 0 ->
        thefts--;
        if
        :: v = 0
        :: v = HEAPS - 1
        fi;
        if
        :: remote_steal(v)
        :: remote_clear(v)
        fi;
        v = 0
    :: trims > 0 -> trims--; thread_trim(h)
    :: lives > 0 -> lives--; thread_leave(); thread_enter()
    :: !over && mallocs + ticks + thefts + trims + lives == 0 && (!all || live == 0) ->
        thread_leave();
        atomic { over = true; mallocs = late; frees = late }
    :: over && mallocs == 0 -> break
    od
}

init
{
    byte i;
    atomic {
        for (i : 0 .. HEAPS - 1) { remote[i] = NIL; shelf[i] = NIL; stolen[i] = NIL; current[i] = NIL }
        for (i : 0 .. HEAPS * GRANULES - 1) { own[i] = NIL }
        for (i : 0 .. GRANULES - 1) { map[i] = NIL }
        for (i : 0 .. BLOCKS - 1) { next[i] = NIL }
        for (i : 0 .. SPANS - 1) { span_free[i] = NIL; span_next[i] = NIL; span_run[i] = NIL; span_owner[i] = NIL }
        i = 0;
        START
    }
    _nr_pr == 1;
    run thread(0, BLOCKS, 0, 0, 0, 0, true, 0);
    _nr_pr == 1;
    run thread(0, 0, 0, 0, 1, 0, false, 0);
    _nr_pr == 1;
    atomic {
        for (i : 0 .. BLOCKS - 1) { assert(loc[i] == POOL) }
        for (i : 0 .. SPANS - 1) { assert(span_state[i] == UNUSED) }
        for (i : 0 .. HEAPS - 1) { assert(remote[i] == NIL && shelf[i] == NIL && stolen[i] == NIL && user[i] == 0) }
    }
}
