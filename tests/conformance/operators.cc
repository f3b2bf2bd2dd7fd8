// operators.cc: C++ operator new and delete in all forms, new_handler, and objects of a thread that free last.
#include "tap.h"

#include <malloc.h>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace
{

// The compiler must not see through: it may leave out a pair of new and delete.
template <typename T> T *seen(T *pointer)
{
    asm volatile("" : "+r"(pointer) : : "memory");
    return pointer;
}

volatile size_t too_large = static_cast<size_t>(PTRDIFF_MAX) - 100;

// Each way to get a block, and the ways to let go of it.
bool use(void *block, size_t size, size_t align)
{
    bool good = block != nullptr && aligned_to(block, align);
    if (good && size < 8192)
        memset(block, 0x5a, size);
    return good;
}

void test_plain()
{
    bool good = true;
    for (size_t size = 0; size < 300000; size = size * 3 / 2 + 1) {
        void *a = ::operator new(size), *b = ::operator new[](size);
        void *c = ::operator new(size, std::nothrow), *d = ::operator new[](size, std::nothrow);
        good &= use(a, size, 8) && use(b, size, 8) && use(c, size, 8) && use(d, size, 8);
        good &= a != b && c != d && malloc_usable_size(a) >= size;
        ::operator delete(a);
        ::operator delete[](b);
        ::operator delete(c, std::nothrow);
        ::operator delete[](d, std::nothrow);
        a = ::operator new(size);
        b = ::operator new[](size);
        ::operator delete(a, size);
        ::operator delete[](b, size);
    }
    ::operator delete(nullptr);
    ::operator delete[](nullptr);
    ::operator delete(nullptr, size_t(8));
    tap_ok(good, "plain, array, nothrow and sized forms");
}

void test_aligned()
{
    bool good = true;
    for (size_t bits = 0; bits <= 21; bits++)
        for (size_t size = 0; size < 100000; size = size * 4 + 1) {
            std::align_val_t align{size_t(1) << bits};
            void *a = ::operator new(size, align), *b = ::operator new[](size, align);
            void *c = ::operator new(size, align, std::nothrow),
                 *d = ::operator new[](size, align, std::nothrow);
            good &= use(a, size, size_t(align)) && use(b, size, size_t(align));
            good &= use(c, size, size_t(align)) && use(d, size, size_t(align));
            ::operator delete(a, align);
            ::operator delete[](b, align);
            ::operator delete(c, align, std::nothrow);
            ::operator delete[](d, align, std::nothrow);
            a = ::operator new(size, align);
            b = ::operator new[](size, align);
            ::operator delete(a, size, align);
            ::operator delete[](b, size, align);
        }
    tap_ok(good, "aligned forms, to 2 MiB; sized deletes of 8 bytes at any of them");
    struct alignas(256) Wide {
        char bytes[256];
    };
    Wide *wide = seen(new Wide[20]);
    tap_ok(aligned_to(wide, 256), "an array of an over-aligned type");
    delete[] wide;
}

// ---- refused ----

template <typename F> bool throws(F call)
{
    try {
        seen(call());
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

int handler_calls;

void handler_gives_up()
{
    if (++handler_calls == 3)
        std::set_new_handler(nullptr);
}

void handler_throws()
{
    handler_calls++;
    throw std::bad_alloc();
}

struct Other {
};

void handler_throws_other()
{
    throw Other();
}

void test_refused()
{
    size_t size = too_large;
    tap_ok(throws([=] { return ::operator new(size); }) && throws([=] { return ::operator new[](size); }) &&
               throws([=] { return ::operator new (size, std::align_val_t{64}); }) &&
               throws([=] { return ::operator new[](size, std::align_val_t{4096}); }),
           "what cannot be had throws std::bad_alloc");
    tap_ok(throws([=] { return new char[size * 2 - size + 200]; }) &&
               throws([=] { return new long[size / 2]; }),
           "so does an array whose size overflows");
    tap_ok(::operator new(size, std::nothrow) == nullptr && ::operator new[](size, std::nothrow) ==
               nullptr && ::operator new (size, std::align_val_t{64}, std::nothrow) == nullptr,
           "nothrow forms return null");
}

void test_handler()
{
    size_t size = too_large;
    handler_calls = 0;
    std::set_new_handler(handler_gives_up);
    tap_ok(throws([=] { return ::operator new(size); }) && handler_calls == 3,
           "the new_handler is called until it takes itself away");
    handler_calls = 0;
    std::set_new_handler(handler_gives_up);
    tap_ok(::operator new(size, std::nothrow) == nullptr &&handler_calls == 3, "by the nothrow form too");
    handler_calls = 0;
    std::set_new_handler(handler_throws);
    tap_ok(::operator new(size, std::nothrow) == nullptr &&handler_calls == 1,
           "what a handler throws does not leave the nothrow form");
    bool other = false;
    std::set_new_handler(handler_throws_other);
    try {
        seen(::operator new(size));
    } catch (const Other &) {
        other = true;
    }
    tap_ok(other, "an exception of the handler's own passes through new");
    std::set_new_handler(nullptr);
}

// ---- containers and threads ----

// Made by the first use in a thread, ended after its function and before its pthread keys.
struct Last {
    std::vector<std::string> lines;
    ~Last()
    {
        for (int i = 0; i < 200; i++)
            lines.emplace_back(size_t(i) * 7, 'x');
        delete[] seen(new char[100000]);
    }
};

thread_local Last last;

void test_threads()
{
    std::vector<std::string> left[4];
    for (int round = 0; round < 25; round++) {
        std::vector<std::thread> threads;
        for (int k = 0; k < 4; k++)
            threads.emplace_back([&left, k] {
                last.lines.emplace_back("first");
                left[k].clear(); // of an ended thread
                for (int i = 0; i < 2000; i++)
                    left[k].emplace_back(size_t(i) % 300, char('a' + k));
            });
        for (auto &thread : threads)
            thread.join();
    }
    bool good = true;
    for (int k = 0; k < 4; k++)
        for (size_t i = 0; i < left[k].size(); i++)
            good &= left[k][i] == std::string(i % 300, char('a' + k));
    tap_ok(good, "strings outlive their threads; thread_local objects free last");
}

} // namespace

int main()
{
    tap_start(60);
    test_plain();
    test_aligned();
    test_refused();
    test_handler();
    test_threads();
    return tap_done();
}
