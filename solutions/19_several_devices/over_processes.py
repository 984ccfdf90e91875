"""all_reduce and exchange over real processes: what the stand-ins of lesson 19 stand for."""
import torch
import torch.distributed as dist


def all_reduce(tensor):
    """The sum over all ranks, a new tensor: dist.all_reduce itself writes into what it is given."""
    total = tensor.detach().clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total)
    return total


def exchange(tensors):
    """Gives tensors to the next rank and returns those of the rank before. No rank waits before it has begun to send *and* to receive:
    were all to send first, and a send to last until it is received, each would wait for the next for ever."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    sent = [tensor.detach().contiguous() for tensor in tensors]
    received = [torch.empty_like(tensor) for tensor in sent]
    transfers = [dist.P2POp(dist.isend, tensor, (rank + 1) % world_size) for tensor in sent]
    transfers += [dist.P2POp(dist.irecv, tensor, (rank - 1) % world_size) for tensor in received]
    for transfer in dist.batch_isend_irecv(transfers):
        transfer.wait()
    return tuple(received)


def join(rank, world_size, meeting_file, backend="gloo"):
    """Makes this process one of world_size ranks, which find each other by a file that is new for each run. No port is named."""
    store = dist.FileStore(str(meeting_file), world_size)
    dist.init_process_group(backend, store=store, rank=rank, world_size=world_size)
