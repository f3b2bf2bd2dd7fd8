/* harden_delete.c - operator delete(void *, size_t) and its form for arrays, which compare the size they are told.
 *
 * The C++ library's hand the pointer to operator delete(void *), which the program may have replaced: what that one takes
 * need not be a block of ours, or not of the size told. So the size is compared where operator delete(void *) is the C++
 * library's own. Where that cannot be seen (a plug-in that brings its C++ library), a size above the block's is wrong
 * in any case. The forms for an alignment are left alone: the C++ library asks for more than the size that is told.
 */
#include "harden.h"

#ifdef TLFL_HARDENED

#include <dlfcn.h>

#include "api.h"
#include "fail.h"

/* operator delete(void *) and operator delete[](void *) as the linker knows them. */
#define DELETE_SINGLE "_ZdlPv"
#define DELETE_ARRAY  "_ZdaPv"

/* How size_t is written in a symbol. */
#if UINTPTR_MAX > UINT32_MAX
#define DELETE_SIZE "m"
#else
#define DELETE_SIZE "j"
#endif

TLFL_API void tlfl__delete_sized(void *pointer, size_t size) __asm__(DELETE_SINGLE DELETE_SIZE);
TLFL_API void tlfl__delete_array_sized(void *pointer, size_t size) __asm__(DELETE_ARRAY DELETE_SIZE);

enum delete_owner { DELETE_UNSEEN, DELETE_LIBRARY, DELETE_PROGRAM };

/* A form without a size, as far as it was looked up. */
struct delete_form {
    const char *name;
    void (*_Atomic call)(void *);
    _Atomic enum delete_owner owner;
};

static bool same_object(void *one, void *other)
{
    Dl_info in_one, in_other;
    return dladdr(one, &in_one) != 0 && dladdr(other, &in_other) != 0 &&
           in_one.dli_fbase == in_other.dli_fbase;
}

/* Looked up until it is seen: the C++ library may come late. Its form for arrays calls the other one. */
static TLFL_COLD enum delete_owner delete_look(struct delete_form *form)
{
    void *library = dlsym(RTLD_DEFAULT, "_ZSt15get_new_handlerv"), *call = dlsym(RTLD_DEFAULT, form->name);
    void *single = dlsym(RTLD_DEFAULT, DELETE_SINGLE);
    if (library == NULL || call == NULL || single == NULL)
        return DELETE_UNSEEN;
    bool own = same_object(call, library) && same_object(single, library);
    enum delete_owner owner = own ? DELETE_LIBRARY : DELETE_PROGRAM;
    atomic_store_explicit(&form->call, (void (*)(void *))call, memory_order_relaxed);
    atomic_store_explicit(&form->owner, owner, memory_order_release);
    return owner;
}

static void delete_told(struct delete_form *form, void *pointer, size_t size)
{
    const char *call = "operator delete";
    enum delete_owner owner = atomic_load_explicit(&form->owner, memory_order_acquire);
    if (TLFL_UNLIKELY(owner == DELETE_UNSEEN))
        owner = delete_look(form);
    if (owner == DELETE_PROGRAM) {
        atomic_load_explicit(&form->call, memory_order_relaxed)(pointer);
        return;
    }
    if (owner == DELETE_UNSEEN && pointer != NULL) {
        size_t asked = tlfl__harden_size(pointer, call);
        size = size < asked ? asked : size;
    }
    tlfl__harden_free(pointer, 0, size, call);
}

void tlfl__delete_sized(void *pointer, size_t size)
{
    static struct delete_form form = {.name = DELETE_SINGLE};
    delete_told(&form, pointer, size);
}

void tlfl__delete_array_sized(void *pointer, size_t size)
{
    static struct delete_form form = {.name = DELETE_ARRAY};
    delete_told(&form, pointer, size);
}

#else

_Static_assert(GRANULE_SIZE != 0, "a translation unit is not empty in ISO C");

#endif
