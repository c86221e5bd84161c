"""Arrays without the values that no row has. Arrow cuts most arrays when it writes a slice of them,
but writes all of a dictionary, of the text that views look at, of the values of list views, and of
the children of dense unions; also where these are inside other types."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyrite.columns.dictionaries import without_unused_values
from pyrite.columns.frames import plain


@lru_cache(maxsize=1024)
def is_loose(kind: pa.DataType) -> bool:
    """Whether arrays of this type are written with values that no row has."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return is_loose(kind.storage_type)
    if types.is_dictionary(kind) or _is_view(kind) or _is_list_view(kind):
        return True
    if types.is_run_end_encoded(kind):
        return False
    if types.is_union(kind):
        return bool(kind.mode == "dense")
    return any(is_loose(kind.field(number).type) for number in range(kind.num_fields))


def compacted(array: pa.Array) -> pa.Array:
    """The same rows."""
    kind, types = array.type, pa.types
    if not is_loose(kind):
        return array
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, compacted(array.storage))
    if types.is_dictionary(kind):
        return _of_dictionary(array)
    if _is_view(kind):
        return plain(array).cast(kind)
    if types.is_union(kind):
        return _of_union(array)
    if types.is_struct(kind):
        fields = [kind.field(number) for number in range(kind.num_fields)]
        children = [compacted(array.field(number)) for number in range(kind.num_fields)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())
    return _of_lists(array)


def _of_dictionary(array: pa.DictionaryArray) -> pa.DictionaryArray:
    kind = array.type
    if not _is_view(kind.value_type):
        return without_unused_values(array)
    # pyarrow cannot take rows of views.
    values = plain(array.dictionary)
    fewer = without_unused_values(pa.DictionaryArray.from_arrays(array.indices, values))
    return pa.DictionaryArray.from_arrays(
        fewer.indices, fewer.dictionary.cast(kind.value_type), ordered=kind.ordered
    )


def _of_lists(array: pa.Array) -> pa.Array:
    kind, types, null = array.type, pa.types, array.is_null()
    if _is_list_view(kind):
        array = pa.concat_arrays([array])  # with only the values that some row has
        make = pa.ListViewArray if types.is_list_view(kind) else pa.LargeListViewArray
        return make.from_arrays(
            array.offsets, array.sizes, compacted(array.values), type=kind, mask=null
        )
    if types.is_fixed_size_list(kind):
        size = kind.list_size
        values = array.values.slice(array.offset * size, len(array) * size)
        return pa.FixedSizeListArray.from_arrays(compacted(values), type=kind, mask=null)
    start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
    offsets = pc.subtract(array.offsets, array.offsets[0])
    if types.is_map(kind):
        keys, items = (each.slice(start, end - start) for each in (array.keys, array.items))
        return pa.MapArray.from_arrays(
            offsets, compacted(keys), compacted(items), type=kind, mask=null
        )
    values = compacted(array.values.slice(start, end - start))
    make = pa.ListArray if types.is_list(kind) else pa.LargeListArray
    return make.from_arrays(offsets, values, type=kind, mask=null)


def _of_union(array: pa.Array) -> pa.Array:
    try:
        return array.take(pa.array(np.arange(len(array))))
    except pa.ArrowNotImplementedError:  # a child whose rows pyarrow cannot take
        return array


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _is_list_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))
