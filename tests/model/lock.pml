/* lock.pml - a model of the futex lock of lock.c; checked by run.sh with spin.
 *
 * Checked: one thread at a time is inside, and none sleeps for ever while the lock is free (spin: no end state but the
 * end). The kernel compares the word and puts to sleep in one step. A thread spins any number of times, up to once round.
 *
 * THREADS and TURNS of each. BUG_WAKE: who was woken says that nobody else sleeps. BUG_COMPARE: sleeps without
 * comparing.
 */
byte word; /* 0 free, 1 held, 2 held and somebody may sleep on it */
byte inside, sleepers, woken;

/* tlfl__os_wait */
inline os_wait()
{
    atomic {
        if
#ifndef BUG_COMPARE
        :: word != 2
        :: word == 2 -> sleepers++; asleep = true
#else
        :: sleepers++; asleep = true
#endif
        fi
    };
    if
    :: asleep -> atomic { woken > 0 -> woken--; asleep = false }
    :: else
    fi
}

/* tlfl__lock_take, and in it lock_wait */
inline lock_take()
{
    atomic { was = word; word = (word == 0 -> 1 : word) };
    if
    :: was != 0 ->
        if
        :: atomic { was = word; word = (word == 0 -> 1 : word) } /* one spin */
        :: skip
        fi;
        do
        :: was == 0 -> break
        :: was != 0 ->
            atomic { was = word; word = 2 };
            if
            :: was != 0 -> os_wait()
            :: else
            fi;
#ifdef BUG_WAKE
            if
            :: was != 0 -> atomic { was = word; word = (word == 0 -> 1 : word) }
            :: else
            fi
#endif
        od
    :: else
    fi
}

/* tlfl__lock_drop */
inline lock_drop()
{
    atomic { was = word; word = 0 };
    if
    :: was == 2 -> /* tlfl__os_wake: one of them */
        atomic {
            if
            :: sleepers > 0 -> sleepers--; woken++
            :: else
            fi
        }
    :: else
    fi
}

active [THREADS] proctype thread()
{
    byte was, turn;
    bool asleep;
    do
    :: turn < TURNS ->
        lock_take();
        inside++;
        assert(inside == 1);
        inside--;
        lock_drop();
        turn++
    :: else -> break
    od
}
